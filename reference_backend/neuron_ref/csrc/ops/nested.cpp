// Moving nested tensors: the source may be on any device, so the executor's same-device rule does not fit.
#include <ATen/ops/_to_copy_native.h>
#include <torch/library.h>

namespace neuron_ref {

TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("_to_copy", at::native::_to_copy_nested);
}

} // namespace neuron_ref
