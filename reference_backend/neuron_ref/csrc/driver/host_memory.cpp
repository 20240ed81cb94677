#include "driver/host_memory.h"

#include "driver/fork_guard.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <sys/mman.h>

namespace neuron_ref::driver {
namespace {

struct Ranges {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> bytes_by_start;
};

Ranges& ranges() {
  static Ranges* const instance = new Ranges; // never destroyed: tensors may outlive static objects
  return *instance;
}

constexpr std::size_t kPageBytes = 4096;

} // namespace

Status host_allocate(std::size_t bytes, void** pointer) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  const std::size_t size = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return Status::host_out_of_memory;
  }
  Ranges& all = ranges();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.bytes_by_start.emplace(reinterpret_cast<std::uintptr_t>(memory), size);
  *pointer = memory;
  return Status::ok;
}

Status host_release(void* pointer) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  Ranges& all = ranges();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto range = all.bytes_by_start.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (range == all.bytes_by_start.end()) {
    return Status::invalid_pointer;
  }
  munmap(pointer, range->second);
  all.bytes_by_start.erase(range);
  return Status::ok;
}

bool is_host_allocation(const void* pointer) noexcept {
  if (in_forked_child()) {
    return false;
  }
  Ranges& all = ranges();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto range = all.bytes_by_start.upper_bound(address);
  if (range == all.bytes_by_start.begin()) {
    return false;
  }
  --range;
  return address - range->first < range->second;
}

} // namespace neuron_ref::driver
