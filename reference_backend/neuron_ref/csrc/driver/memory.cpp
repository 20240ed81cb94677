#include "driver/memory.h"

#include "driver/fork_guard.h"
#include "driver/stream.h"
#include "driver/topology.h"

#include <fcntl.h>
#include <map>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace neuron_ref::driver {
namespace detail {
Windows windows;
} // namespace detail

namespace {

// The free and the taken ranges of one device, in bytes from the start of its window.
struct Device {
  std::mutex mutex;
  int descriptor = -1;
  std::map<std::size_t, std::size_t> free_ranges;
  std::map<std::size_t, std::size_t> taken_ranges;
  std::size_t free_bytes = 0;
};

Device* devices() {
  static Device* const instance = new Device[kMaxDevices]; // never destroyed: tensors may outlive static objects
  return instance;
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
}

void punch(const Device& device, std::size_t offset, std::size_t bytes) {
  fallocate(
      device.descriptor,
      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
      static_cast<off_t>(offset),
      static_cast<off_t>(bytes));
}

Status map_windows() {
  const Topology& shape = topology();
  const std::size_t device_bytes = shape.memory_bytes;
  const std::size_t window_bytes = device_bytes * static_cast<std::size_t>(shape.devices);
  // One more chunk on both sides of the windows, so that an index just outside one device's memory still faults.
  const std::size_t gap = kChunkBytes;
  void* reservation = mmap(
      nullptr, 2 * window_bytes + 3 * gap, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reservation == MAP_FAILED) {
    return Status::mapping_failed;
  }
  const auto start = (reinterpret_cast<std::uintptr_t>(reservation) + gap - 1) / gap * gap;
  const std::uintptr_t sealed = start + gap;
  const std::uintptr_t open = sealed + window_bytes;
  for (int index = 0; index < shape.devices; ++index) {
    Device& device = devices()[index];
    const std::size_t offset = device_bytes * static_cast<std::size_t>(index);
    device.descriptor = static_cast<int>(syscall(SYS_memfd_create, "neuron-device", 1u /* MFD_CLOEXEC */));
    if (device.descriptor < 0 || ftruncate(device.descriptor, static_cast<off_t>(device_bytes)) != 0) {
      return Status::mapping_failed;
    }
    const auto map = [&](std::uintptr_t window, int protection) {
      return mmap(
                 reinterpret_cast<void*>(window + offset),
                 device_bytes,
                 protection,
                 MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                 device.descriptor,
                 0) != MAP_FAILED;
    };
    if (!map(sealed, PROT_NONE) || !map(open, PROT_READ | PROT_WRITE)) {
      return Status::mapping_failed;
    }
    device.free_ranges.emplace(0, device_bytes);
    device.free_bytes = device_bytes;
  }
  // A child must never write into the parent's tensors through the shared pages.
  if (madvise(reinterpret_cast<void*>(sealed), 2 * window_bytes, MADV_DONTFORK) != 0) {
    return Status::mapping_failed;
  }
  detail::windows = Windows{sealed, open, window_bytes, device_bytes};
  return Status::ok;
}

} // namespace

Status initialize_memory() noexcept {
  static const Status status = map_windows();
  return status;
}

Status allocate(int device, std::size_t bytes, void** pointer) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (device < 0 || device >= topology().devices) {
    return Status::invalid_device;
  }
  Device& target = devices()[device];
  const std::size_t size = round_up(bytes);
  const std::lock_guard<std::mutex> lock(target.mutex);
  for (auto range = target.free_ranges.begin(); range != target.free_ranges.end(); ++range) {
    if (range->second < size) {
      continue;
    }
    const std::size_t offset = range->first;
    const std::size_t rest = range->second - size;
    target.free_ranges.erase(range);
    if (rest != 0) {
      target.free_ranges.emplace(offset + size, rest);
    }
    target.taken_ranges.emplace(offset, size);
    target.free_bytes -= size;
    const auto base = detail::windows.sealed + detail::windows.device_bytes * static_cast<std::size_t>(device);
    *pointer = reinterpret_cast<void*>(base + offset);
    return Status::ok;
  }
  return Status::out_of_memory;
}

Status release(void* pointer) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (!is_device_address(pointer)) {
    return Status::invalid_pointer;
  }
  const int index = device_of_address(pointer);
  const Status synchronized = synchronize_device(index);
  Device& device = devices()[index];
  const std::lock_guard<std::mutex> lock(device.mutex);
  const std::size_t offset = (reinterpret_cast<std::uintptr_t>(pointer) - detail::windows.sealed) %
      detail::windows.device_bytes;
  const auto taken = device.taken_ranges.find(offset);
  if (taken == device.taken_ranges.end()) {
    return Status::invalid_pointer;
  }
  std::size_t begin = taken->first;
  std::size_t size = taken->second;
  punch(device, begin, size);
  device.free_bytes += size;
  device.taken_ranges.erase(taken);
  auto next = device.free_ranges.lower_bound(begin);
  if (next != device.free_ranges.end() && next->first == begin + size) {
    size += next->second;
    next = device.free_ranges.erase(next);
  }
  if (next != device.free_ranges.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == begin) {
      begin = previous->first;
      size += previous->second;
      device.free_ranges.erase(previous);
    }
  }
  device.free_ranges.emplace(begin, size);
  return synchronized;
}

Status discard(void* pointer, std::size_t bytes) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (!is_device_address(pointer)) {
    return Status::invalid_pointer;
  }
  const int index = device_of_address(pointer);
  const Status synchronized = synchronize_device(index);
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t offset = (reinterpret_cast<std::uintptr_t>(pointer) - detail::windows.sealed) %
      detail::windows.device_bytes;
  const std::size_t first = (offset + page - 1) / page * page;
  const std::size_t last = (offset + bytes) / page * page;
  if (last > first) {
    punch(devices()[index], first, last - first);
  }
  return synchronized;
}

Status pointer_device(const void* pointer, int* device) noexcept {
  if (!is_device_address(pointer)) {
    return Status::invalid_pointer;
  }
  *device = device_of_address(pointer);
  return Status::ok;
}

Status memory_info(int device, std::size_t* free_bytes, std::size_t* total_bytes) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (device < 0 || device >= topology().devices) {
    return Status::invalid_device;
  }
  Device& target = devices()[device];
  const std::lock_guard<std::mutex> lock(target.mutex);
  *free_bytes = target.free_bytes;
  *total_bytes = detail::windows.device_bytes;
  return Status::ok;
}

} // namespace neuron_ref::driver
