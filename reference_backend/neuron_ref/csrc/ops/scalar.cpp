// Reads of single values by the host.
#include "driver/memory.h"
#include "ops/alias.h"
#include "ops/executor.h"
#include "ops/run_scope.h"
#include "runtime/stream.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <torch/library.h>

namespace neuron_ref {
namespace {

at::Scalar local_scalar_dense(const at::Tensor& self) {
  synchronize_stream(current_stream(self.device().index()), "aten::_local_scalar_dense");
  count_op("aten::_local_scalar_dense");
  Block* block = nullptr;
  auto alias = AliasSource::take(self, &block);
  at::Tensor tensor(std::move(alias));
  const RunScope scope(-1);
  const at::Scalar value = at::native::_local_scalar_dense_cpu(tensor);
  AliasSource::give_back(tensor.unsafeReleaseIntrusivePtr(), block);
  return value;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_local_scalar_dense", local_scalar_dense);
}

} // namespace neuron_ref
