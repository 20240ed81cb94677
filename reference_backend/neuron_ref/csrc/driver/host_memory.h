#pragma once

#include "driver/status.h"

#include <cstddef>

namespace neuron_ref::driver {

// Page-aligned host memory that copies may use without the host waiting for them.
Status host_allocate(std::size_t bytes, void** pointer) noexcept;
Status host_release(void* pointer) noexcept;

// Whether an address, interior ones included, lies in such memory.
bool is_host_allocation(const void* pointer) noexcept;

} // namespace neuron_ref::driver
