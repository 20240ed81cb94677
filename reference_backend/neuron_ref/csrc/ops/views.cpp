// Views of device tensors: metadata only, so they need no executor.
#include "faults.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

namespace neuron_ref {
namespace {

at::Tensor view(const at::Tensor& self, c10::IntArrayRef sizes) {
  if (C10_UNLIKELY(fault(Fault::view_copies))) {
    return at::native::view(at::clone(self), sizes);
  }
  return at::native::view(self, sizes);
}

at::Tensor as_strided(
    const at::Tensor& self,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides,
    std::optional<std::int64_t> storage_offset) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, storage_offset);
}

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  return at::native::_reshape_alias(self, sizes, strides);
}

at::Tensor unfold(const at::Tensor& self, std::int64_t dimension, std::int64_t size, std::int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("view", view);
  m.impl("as_strided", as_strided);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("unfold", unfold);
}

} // namespace neuron_ref
