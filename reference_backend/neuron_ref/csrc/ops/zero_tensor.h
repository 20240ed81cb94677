#pragma once

#include <ATen/core/Tensor.h>

namespace neuron_ref {

// A tensor of zeros that has no memory, as autograd uses for undefined gradients.
at::Tensor make_zero_tensor(c10::IntArrayRef sizes, c10::ScalarType dtype, int device);

} // namespace neuron_ref
