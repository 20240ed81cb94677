#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>

namespace neuron_ref {

// Raises torch.OutOfMemoryError with what was asked for, what the device holds, and what to do.
[[noreturn]] void raise_out_of_memory(
    int device,
    std::size_t requested_bytes,
    std::size_t free_bytes,
    std::size_t total_bytes,
    const c10::CachingDeviceAllocator::DeviceStats& stats);

} // namespace neuron_ref
