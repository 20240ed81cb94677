#include "runtime/out_of_memory.h"

#include <c10/util/Exception.h>

#include <cstdio>
#include <string>

namespace neuron_ref {
namespace {

std::string readable(std::size_t bytes) {
  const double size = static_cast<double>(bytes);
  char text[32];
  if (size < 0x1p10) {
    std::snprintf(text, sizeof(text), "%zu bytes", bytes);
  } else if (size < 0x1p20) {
    std::snprintf(text, sizeof(text), "%.2f KiB", size / 0x1p10);
  } else if (size < 0x1p30) {
    std::snprintf(text, sizeof(text), "%.2f MiB", size / 0x1p20);
  } else {
    std::snprintf(text, sizeof(text), "%.2f GiB", size / 0x1p30);
  }
  return text;
}

} // namespace

void raise_out_of_memory(
    int device,
    std::size_t requested_bytes,
    std::size_t free_bytes,
    std::size_t total_bytes,
    const c10::CachingDeviceAllocator::DeviceStats& stats) {
  const auto aggregate = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto allocated = static_cast<std::size_t>(stats.allocated_bytes[aggregate].current);
  const auto reserved = static_cast<std::size_t>(stats.reserved_bytes[aggregate].current);
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      false,
      "NEURON out of memory. Tried to allocate ",
      readable(requested_bytes),
      ". neuron:",
      device,
      " has a total capacity of ",
      readable(total_bytes),
      " of which ",
      readable(free_bytes),
      " is free. Of the memory in use, ",
      readable(allocated),
      " is allocated by tensors, and ",
      readable(reserved - allocated),
      " is reserved by the allocator but unallocated. The cache was already given back before this error. Use smaller "
      "batches, free tensors, or set NEURON_REF_MEMORY to give each device more.");
}

} // namespace neuron_ref
