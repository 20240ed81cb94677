#include "runtime/stream.h"

#include "driver/topology.h"
#include "faults.h"
#include "runtime/check.h"
#include "runtime/device.h"

#include <array>
#include <atomic>

namespace neuron_ref {
namespace {

thread_local std::array<int, driver::kMaxDevices> current_index{};

std::array<std::array<std::atomic<unsigned>, 2>, driver::kMaxDevices> next_in_pool{};

} // namespace

int current_stream_index(int device) noexcept {
  return current_index[static_cast<std::size_t>(device)];
}

driver::Stream* current_stream(int device) noexcept {
  return driver::stream_at(device, current_stream_index(device));
}

c10::Stream to_c10_stream(int device, int index) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kNeuron, static_cast<c10::DeviceIndex>(device)), index);
}

driver::Stream* to_driver_stream(const c10::Stream& stream) {
  TORCH_CHECK(stream.device_type() == kNeuron, "Expected a neuron stream but got one of ", stream.device());
  driver::Stream* result = driver::stream_at(device_or_current(stream.device_index()), static_cast<int>(stream.id()));
  TORCH_CHECK(
      result != nullptr,
      "neuron:",
      static_cast<int>(stream.device_index()),
      " has no stream ",
      stream.id(),
      "; streams come from torch.Stream(device)");
  return result;
}

c10::Stream exchange_stream(const c10::Stream& stream) {
  check_not_forked();
  to_driver_stream(stream);
  const int device = device_or_current(stream.device_index());
  int& current = current_index[static_cast<std::size_t>(device)];
  const int previous = current;
  current = static_cast<int>(stream.id());
  return to_c10_stream(device, previous);
}

c10::Stream new_stream(int device, int priority) {
  check_not_forked();
  if (fault(Fault::new_stream_is_default)) {
    return to_c10_stream(device, 0);
  }
  const int pool = priority < 0 ? 1 : 0;
  const unsigned ticket = next_in_pool[static_cast<std::size_t>(device)][static_cast<std::size_t>(pool)]++;
  const int slot = static_cast<int>(ticket % driver::kStreamsPerPool);
  return to_c10_stream(device, 1 + pool * driver::kStreamsPerPool + slot);
}

void synchronize_stream(driver::Stream* stream, const char* what) {
  check(driver::synchronize(stream), what);
}

} // namespace neuron_ref
