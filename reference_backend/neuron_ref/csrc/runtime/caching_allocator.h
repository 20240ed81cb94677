#pragma once

#include "runtime/block.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>
#include <utility>

// The device memory that tensors get: segments from the driver, cut into blocks that are kept for reuse.
namespace neuron_ref::caching {

// Reserves the tables; call once, after the driver's memory is mapped.
void initialize();

// A block for at least `bytes` (not zero) on the calling thread's current stream of the device.
// Raises torch.OutOfMemoryError when the device has no room even after the cache was given back.
Block* allocate(int device, std::size_t bytes);

// Gives a block back; its memory is used again in the order of its stream, after the streams recorded on it.
// Does nothing in a forked child.
void free(Block* block) noexcept;

// The block that starts at a device address, or null.
Block* block_at(const void* device_pointer) noexcept;

// The block that holds a device address, or null. No lock and no allocation: a signal handler calls it.
Block* block_around(const void* device_pointer) noexcept;

void record_stream(Block* block, int stream);

// Gives all segments that hold no active block back to the driver.
void empty_cache();

c10::CachingDeviceAllocator::DeviceStats stats(int device);
void reset_accumulated_stats(int device);
void reset_peak_stats(int device);
std::pair<std::size_t, std::size_t> memory_info(int device);

} // namespace neuron_ref::caching
