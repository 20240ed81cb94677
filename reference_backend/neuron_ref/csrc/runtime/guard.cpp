#include "runtime/guard.h"

#include "driver/event.h"
#include "runtime/check.h"
#include "runtime/device.h"
#include "runtime/device_allocator.h"
#include "runtime/stream.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace neuron_ref {
namespace {

driver::Event* as_event(void* event) {
  return static_cast<driver::Event*>(event);
}

class GuardImpl final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override {
    return kNeuron;
  }

  c10::Device exchangeDevice(c10::Device device) const override {
    return {kNeuron, static_cast<c10::DeviceIndex>(exchange_device(device_or_current(device.index())))};
  }

  c10::Device getDevice() const override {
    return {kNeuron, static_cast<c10::DeviceIndex>(current_device())};
  }

  void setDevice(c10::Device device) const override {
    set_device(device_or_current(device.index()));
  }

  void uncheckedSetDevice(c10::Device device) const noexcept override {
    restore_device(device.index());
  }

  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(device_count());
  }

  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    return {}; // every dtype that CPU kernels have
  }

  c10::Stream getStream(c10::Device device) const override {
    const int index = device_or_current(device.index());
    return to_c10_stream(index, current_stream_index(index));
  }

  c10::Stream getDefaultStream(c10::Device device) const override {
    return to_c10_stream(device_or_current(device.index()), 0);
  }

  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return new_stream(device_or_current(device.index()), high_priority ? -1 : 0);
  }

  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return new_stream(device_or_current(device.index()), priority);
  }

  c10::Stream exchangeStream(c10::Stream stream) const override {
    return exchange_stream(stream);
  }

  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return to_driver_stream(stream);
  }

  bool queryStream(const c10::Stream& stream) const override {
    const driver::Status status = driver::query(to_driver_stream(stream));
    if (status != driver::Status::not_ready) {
      check(status, "querying a stream");
    }
    return status == driver::Status::ok;
  }

  void synchronizeStream(const c10::Stream& stream) const override {
    synchronize_stream(to_driver_stream(stream), "synchronizing a stream");
  }

  void synchronizeDevice(const c10::DeviceIndex device) const override {
    check(driver::synchronize_device(device_or_current(device)), "synchronizing a device");
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag flag)
      const override {
    driver::Stream* target = to_driver_stream(stream);
    if (*event == nullptr) {
      driver::Event* created = nullptr;
      const bool timing = flag == c10::EventFlag::BACKEND_DEFAULT;
      check(driver::event_create(driver::device_of(target), timing, &created), "creating an event");
      *event = created;
    }
    TORCH_CHECK(
        driver::event_device(as_event(*event)) == driver::device_of(target),
        "the event belongs to neuron:",
        driver::event_device(as_event(*event)),
        " and cannot be recorded on a stream of ",
        stream.device());
    check(driver::event_record(as_event(*event), target), "recording an event");
  }

  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) {
      check(driver::event_wait(as_event(event), to_driver_stream(stream)), "waiting for an event");
    }
  }

  bool queryEvent(void* event) const override {
    if (event == nullptr) {
      return true;
    }
    const driver::Status status = driver::event_query(as_event(event));
    if (status != driver::Status::not_ready) {
      check(status, "querying an event");
    }
    return status == driver::Status::ok;
  }

  void synchronizeEvent(void* event) const override {
    if (event != nullptr) {
      check(driver::event_synchronize(as_event(event)), "synchronizing an event");
    }
  }

  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event != nullptr) {
      driver::event_destroy(as_event(event));
    }
  }

  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(
        start != nullptr && end != nullptr, "Both events must be recorded before calculating elapsed time.");
    double milliseconds = 0;
    check(driver::event_elapsed(as_event(start), as_event(end), &milliseconds), "elapsed time of two events");
    return milliseconds;
  }

  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    device_allocator()->recordStream(data, stream);
  }
};

} // namespace

void install_guard() {
  c10::impl::DeviceGuardImplRegistrar(kNeuron, new GuardImpl); // c10 keeps it for ever
}

} // namespace neuron_ref
