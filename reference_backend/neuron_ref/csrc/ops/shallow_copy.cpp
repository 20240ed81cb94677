// Which tensors `tensor.data = other` and `Module.to` may exchange in place. PyTorch's own list of device types does
// not hold PrivateUse1, so Module.to would replace every Parameter, and an optimizer built before would go stale.
#include "ops/alias.h"

#include <torch/library.h>

namespace neuron_ref {
namespace {

bool is_exchangeable(const c10::TensorImpl* tensor) {
  return is_dense(tensor) && (tensor->is_cpu() || on_device(tensor));
}

bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const c10::TensorImpl* left = self.unsafeGetTensorImpl();
  const c10::TensorImpl* right = from.unsafeGetTensorImpl();
  if (is_exchangeable(left) && is_exchangeable(right)) {
    return true;
  }
  constexpr c10::DispatchKeySet kSparse(c10::DispatchKey::Sparse);
  constexpr c10::DispatchKeySet kCompressed(c10::DispatchKey::SparseCsr);
  const auto both = [&](c10::DispatchKeySet key) {
    return left->key_set().has_any(key) && right->key_set().has_any(key);
  };
  return both(kSparse) || both(kCompressed) || left->key_set() == right->key_set();
}

} // namespace

// All of these keys: the operator is called on the tensor as it is, with or without autograd, of any layout.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
}
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
}
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
}

} // namespace neuron_ref
