#include "ops/zero_tensor.h"

#include "runtime/device.h"

#include <ATen/EmptyTensor.h>
#include <torch/library.h>

namespace neuron_ref {
namespace {

struct NoMemory final : c10::Allocator {
  explicit NoMemory(int device) : device_(kNeuron, static_cast<c10::DeviceIndex>(device)) {}
  c10::DataPtr allocate(std::size_t) override {
    return {nullptr, device_};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return [](void*) {};
  }
  void copy_data(void*, const void*, std::size_t) const override {}

 private:
  c10::Device device_;
};

at::Tensor efficient_zero_tensor(
    c10::IntArrayRef sizes,
    std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout>,
    std::optional<c10::Device> device,
    std::optional<bool>) {
  return make_zero_tensor(
      sizes, dtype.value_or(c10::get_default_dtype_as_scalartype()), device_or_current(device ? device->index() : -1));
}

} // namespace

at::Tensor make_zero_tensor(c10::IntArrayRef sizes, c10::ScalarType dtype, int device) {
  NoMemory allocator(device);
  // The key must be there at construction: it cannot be set afterwards on a tensor with memory.
  const c10::DispatchKeySet keys({c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor});
  at::Tensor result = at::detail::empty_generic(sizes, &allocator, keys, dtype, std::nullopt);
  result.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->set_resizable(false);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_efficientzerotensor", efficient_zero_tensor);
}

} // namespace neuron_ref
