#pragma once

#include "ops/call.h"

namespace neuron_ref {

// The CPU tensor that stands for a sparse, nested or quantized device tensor; its parts are aliases.
at::Tensor layout_alias(Call& call, const at::Tensor& tensor, bool written);

// The device tensor for a CPU result of such a layout.
at::Tensor layout_to_device(Call& call, const at::Tensor& result);

// Puts what a kernel changed in the alias back into the device tensor.
void layout_carry_over(Call& call, const at::Tensor& tensor, const at::Tensor& alias);

// A device tensor of zeros without memory, for a CPU one.
at::Tensor zero_tensor_to_device(const at::Tensor& result, int device);

// A CPU tensor with memory of its own, for results that stay on the host.
at::Tensor copy_to_heap(const at::Tensor& tensor);

} // namespace neuron_ref
