#pragma once

#include "runtime/block.h"

#include <ATen/core/Tensor.h>

namespace neuron_ref {

inline bool on_device(const c10::TensorImpl* tensor) noexcept {
  return tensor->key_set().has_backend(c10::BackendComponent::PrivateUse1Bit);
}

inline bool is_dense(const c10::TensorImpl* tensor) noexcept {
  constexpr c10::DispatchKeySet kOther = c10::DispatchKeySet(
      {c10::DispatchKey::Sparse, c10::DispatchKey::SparseCsr, c10::DispatchKey::Quantized,
       c10::DispatchKey::NestedTensor});
  return !tensor->key_set().has_any(kOther);
}

// A CPU tensor over the readable window of a dense device tensor: same sizes, strides, offset and bits. It takes no
// part in autograd. While it lives, the device tensor must be kept alive by someone else.
//
// A block keeps one spare alias; `take` may hand that one out, `give_back` returns it. So an operator on a tensor of
// the same shape as the last one allocates nothing.
class AliasSource {
 public:
  static c10::intrusive_ptr<c10::TensorImpl> take(const at::Tensor& tensor, Block** block);
  static void give_back(c10::intrusive_ptr<c10::TensorImpl> alias, Block* block) noexcept;
};

// An alias that owns a reference to the device storage: safe to keep for as long as one likes.
at::Tensor owning_alias(const at::Tensor& tensor);

// The CPU storage over a device storage's memory. Two device tensors that share a storage get the same one.
c10::intrusive_ptr<c10::StorageImpl> shadow_storage(c10::StorageImpl* storage, Block* block);

} // namespace neuron_ref
