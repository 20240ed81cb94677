#include "runtime/hooks.h"

#include "driver/fork_guard.h"
#include "driver/memory.h"
#include "runtime/check.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/host_allocator.h"
#include "runtime/storage.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace neuron_ref {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  void init() const override {
    check_not_forked();
  }

  bool isBuilt() const override {
    return true;
  }

  bool isAvailable() const override {
    return device_count() > 0;
  }

  bool hasPrimaryContext(c10::DeviceIndex device) const override {
    return !driver::in_forked_child() && device >= 0 && device < device_count();
  }

  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(device_count());
  }

  void setCurrentDevice(c10::DeviceIndex device) const override {
    set_device(device);
  }

  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current_device());
  }

  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return static_cast<c10::DeviceIndex>(exchange_device(device));
  }

  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return static_cast<c10::DeviceIndex>(exchange_device(device));
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device);
  }

  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return new_generator(device);
  }

  at::Device getDeviceFromPtr(void* data) const override {
    int device = 0;
    check(driver::pointer_device(data, &device), "looking up the device of an address");
    return {kNeuron, static_cast<c10::DeviceIndex>(device)};
  }

  bool isPinnedPtr(const void* data) const override {
    return is_pinned(data);
  }

  c10::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_allocator();
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), bytes);
  }
};

} // namespace

void install_hooks() {
  at::RegisterPrivateUse1HooksInterface(new Hooks); // PyTorch keeps it for ever
}

} // namespace neuron_ref
