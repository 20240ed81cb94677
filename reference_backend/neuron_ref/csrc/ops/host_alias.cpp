// The one operator of our own: a CPU tensor over a device tensor's memory, for tests and collectives.
#include "ops/alias.h"
#include "runtime/stream.h"

#include <torch/library.h>

namespace neuron_ref {
namespace {

at::Tensor alias_host(const at::Tensor& tensor) {
  synchronize_stream(current_stream(tensor.device().index()), "alias_host");
  return owning_alias(tensor);
}

} // namespace

TORCH_LIBRARY(neuron_ref, m) {
  m.def("alias_host(Tensor tensor) -> Tensor");
}
TORCH_LIBRARY_IMPL(neuron_ref, PrivateUse1, m) {
  m.impl("alias_host", alias_host);
}

} // namespace neuron_ref
