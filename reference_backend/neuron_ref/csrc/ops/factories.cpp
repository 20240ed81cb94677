// Creation of device tensors.
#include "faults.h"
#include "runtime/device.h"
#include "runtime/device_allocator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace neuron_ref {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

// Selects the device of new memory without the cost of a c10 guard.
class TargetDevice {
 public:
  explicit TargetDevice(const std::optional<c10::Device>& device)
      : previous_(exchange_device(device_or_current(device ? device->index() : -1))) {}
  ~TargetDevice() {
    restore_device(previous_);
  }
  TargetDevice(const TargetDevice&) = delete;
  TargetDevice& operator=(const TargetDevice&) = delete;

 private:
  int previous_;
};

void check_options(const std::optional<c10::Layout>& layout, const std::optional<bool>& pin_memory) {
  TORCH_CHECK(
      layout.value_or(c10::Layout::Strided) == c10::Layout::Strided,
      "only strided tensors can be made by empty on neuron, but got layout ",
      *layout);
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

at::Tensor empty(
    c10::IntArrayRef sizes,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    std::optional<c10::MemoryFormat> memory_format) {
  check_options(layout, pin_memory);
  const TargetDevice target(device);
  return at::detail::empty_generic(sizes, device_allocator(), kKeys, c10::dtype_or_default(dtype), memory_format);
}

at::Tensor empty_strided(
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  const TargetDevice target(device);
  return at::detail::empty_strided_generic(sizes, strides, device_allocator(), kKeys, c10::dtype_or_default(dtype));
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
}

} // namespace neuron_ref
