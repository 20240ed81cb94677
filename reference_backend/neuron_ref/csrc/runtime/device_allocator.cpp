#include "runtime/device_allocator.h"

#include "driver/memory.h"
#include "runtime/caching_allocator.h"
#include "runtime/check.h"
#include "runtime/device.h"
#include "runtime/stream.h"

#include <cstring>

namespace neuron_ref {
namespace {

void free_block(void* context) {
  caching::free(static_cast<Block*>(context));
}

class DeviceAllocatorImpl final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    return allocate_on(current_device(), bytes);
  }

  // No raw_deleter: the context of a DataPtr is its block, not its address.

  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    if (bytes == 0) {
      return;
    }
    for (const void* pointer : {static_cast<const void*>(destination), source}) {
      int device = 0;
      check(driver::pointer_device(pointer, &device), "copying device memory");
      synchronize_stream(current_stream(device), "copying device memory");
    }
    std::memcpy(driver::open_address(destination), driver::open_address(source), bytes);
  }

  // Lazy clones ask this before they share memory. The usual answer compares context and address.
  bool is_simple_data_ptr(const c10::DataPtr& data) const override {
    return data.get() == nullptr || block_of(data) != nullptr;
  }

  bool initialized() override {
    return driver::windows().window_bytes != 0;
  }

  void emptyCache(c10::MempoolId_t) override {
    caching::empty_cache();
  }

  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    Block* block = block_of(data);
    if (block == nullptr) {
      return; // no bytes, or memory that this allocator does not own
    }
    to_driver_stream(stream);
    TORCH_CHECK(
        stream.device_index() == block->device,
        "record_stream: the tensor is on neuron:",
        block->device,
        " and the stream on ",
        stream.device());
    caching::record_stream(block, static_cast<int>(stream.id()));
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return caching::stats(device_or_current(device));
  }

  void resetAccumulatedStats(c10::DeviceIndex device) override {
    caching::reset_accumulated_stats(device_or_current(device));
  }

  void resetPeakStats(c10::DeviceIndex device) override {
    caching::reset_peak_stats(device_or_current(device));
  }

  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    return caching::memory_info(device_or_current(device));
  }
};

} // namespace

c10::DeviceAllocator* device_allocator() {
  static auto* const instance = new DeviceAllocatorImpl; // never destroyed: storages point to it until the end
  return instance;
}

c10::DataPtr allocate_on(int device, std::size_t bytes) {
  if (bytes == 0) {
    check_not_forked();
    return c10::DataPtr(nullptr, c10::Device(kNeuron, static_cast<c10::DeviceIndex>(device)));
  }
  return own_block(caching::allocate(device, bytes));
}

c10::DataPtr own_block(Block* block) {
  return c10::DataPtr(
      block->pointer, block, &free_block, c10::Device(kNeuron, static_cast<c10::DeviceIndex>(block->device)));
}

Block* block_of(const c10::DataPtr& data) noexcept {
  return data.get_deleter() == &free_block ? static_cast<Block*>(data.get_context()) : nullptr;
}

} // namespace neuron_ref
