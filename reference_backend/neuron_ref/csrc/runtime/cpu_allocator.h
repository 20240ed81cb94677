#pragma once

#include "runtime/block.h"

#include <c10/core/Allocator.h>

namespace neuron_ref {

// Installs the CPU allocator that can be switched to device memory. What a CPU kernel allocates while the executor
// runs it then lies in device memory, and its result becomes a device tensor without a copy.
void install_cpu_allocator();

namespace detail {
extern thread_local int allocation_device; // -1: the heap
} // namespace detail

// While it lives, CPU allocations of this thread lie in the readable window of a device's memory; -1 means the heap.
class AllocationDevice {
 public:
  explicit AllocationDevice(int device) noexcept : previous_(detail::allocation_device) {
    detail::allocation_device = device;
  }
  ~AllocationDevice() {
    detail::allocation_device = previous_;
  }
  AllocationDevice(const AllocationDevice&) = delete;
  AllocationDevice& operator=(const AllocationDevice&) = delete;

 private:
  int previous_;
};

// The block of memory that this allocator took from a device, or null for heap memory.
Block* block_of_cpu_data(const c10::DataPtr& data) noexcept;

} // namespace neuron_ref
