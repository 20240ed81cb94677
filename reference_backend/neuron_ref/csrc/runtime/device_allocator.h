#pragma once

#include "runtime/block.h"

#include <c10/core/CachingDeviceAllocator.h>

namespace neuron_ref {

// The allocator that c10 knows for the device.
c10::DeviceAllocator* device_allocator();

// Memory on a given device; a null pointer for zero bytes.
c10::DataPtr allocate_on(int device, std::size_t bytes);

// Wraps a block that the caller owns.
c10::DataPtr own_block(Block* block);

// The block behind a storage's memory, or null when the memory is none of the allocator's (foreign or of no bytes).
Block* block_of(const c10::DataPtr& data) noexcept;

} // namespace neuron_ref
