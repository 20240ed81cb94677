// Tensor.record_stream: keeps a tensor's memory from being used again before a stream has passed.
#include "runtime/device_allocator.h"

#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace neuron_ref {
namespace {

void record_stream(at::Tensor& self, c10::Stream stream) {
  device_allocator()->recordStream(self.storage().data_ptr(), stream);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("record_stream", record_stream);
}

} // namespace neuron_ref
