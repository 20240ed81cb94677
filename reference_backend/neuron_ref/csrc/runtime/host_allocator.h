#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace neuron_ref {

// Makes c10 take pinned memory from the driver.
void install_host_allocator();

c10::Allocator* pinned_allocator();

bool is_pinned(const void* pointer) noexcept;

// Keeps pinned memory from being used again before the stream has passed. `pointer` may be interior.
// False when the memory is not known to the allocator.
bool record_pinned_use(const c10::DataPtr& data, const c10::Stream& stream);

void empty_host_cache();

// Names as in PyTorch's host memory statistics, such as "allocated_bytes.current".
std::vector<std::pair<std::string, std::int64_t>> host_memory_stats();

} // namespace neuron_ref
