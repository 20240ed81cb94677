#pragma once

#include <ATen/core/Tensor.h>

namespace neuron_ref {

// A copy that is wrong in the ways that are switched on; `to` and `from` are the CPU tensors of the two sides.
void faulty_copy(const at::Tensor& destination, const at::Tensor& source, at::Tensor& to, const at::Tensor& from);

} // namespace neuron_ref
