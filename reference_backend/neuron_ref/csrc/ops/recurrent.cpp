// The fused cells of LSTM and GRU. PyTorch asks for them on every device but the CPU, where no such kernel exists, so
// they are written out here in operators of the device. Gates follow PyTorch's order: input, forget, cell, output for
// the LSTM; reset, input, new for the GRU.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <tuple>

namespace neuron_ref {
namespace {

using Optional = std::optional<at::Tensor>;

bool present(const Optional& tensor) {
  return tensor.has_value() && tensor->defined();
}

at::Tensor with_bias(const at::Tensor& gates, const Optional& bias) {
  return present(bias) ? at::add(gates, *bias) : gates;
}

// The derivatives of sigmoid and tanh, in terms of their values.
at::Tensor sigmoid_slope(const at::Tensor& value) {
  return at::mul(value, at::rsub(value, 1));
}

at::Tensor tanh_slope(const at::Tensor& value) {
  return at::rsub(at::mul(value, value), 1);
}

at::Tensor sum_over_batch(const at::Tensor& gradient, bool wanted) {
  return wanted ? at::sum(gradient, {0}, false) : at::Tensor();
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm(
    const at::Tensor& input_gates,
    const at::Tensor& hidden_gates,
    const at::Tensor& cell,
    const Optional& input_bias,
    const Optional& hidden_bias) {
  const at::Tensor gates = at::add(with_bias(hidden_gates, hidden_bias), with_bias(input_gates, input_bias));
  const auto parts = at::chunk(gates, 4, 1);
  const at::Tensor in = at::sigmoid(parts[0]);
  const at::Tensor forget = at::sigmoid(parts[1]);
  const at::Tensor candidate = at::tanh(parts[2]);
  const at::Tensor out = at::sigmoid(parts[3]);
  at::Tensor new_cell = at::add(at::mul(forget, cell), at::mul(in, candidate));
  at::Tensor hidden = at::mul(out, at::tanh(new_cell));
  return {std::move(hidden), std::move(new_cell), at::cat({in, forget, candidate, out}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_backward(
    const Optional& hidden_gradient,
    const Optional& cell_gradient,
    const at::Tensor& cell,
    const at::Tensor& new_cell,
    const at::Tensor& workspace,
    bool has_bias) {
  if (!present(hidden_gradient) && !present(cell_gradient)) {
    return {};
  }
  const auto parts = at::chunk(workspace, 4, 1);
  const at::Tensor &in = parts[0], &forget = parts[1], &candidate = parts[2], &out = parts[3];
  const at::Tensor of_hidden = present(hidden_gradient) ? *hidden_gradient : at::zeros_like(new_cell);
  const at::Tensor squashed = at::tanh(new_cell);
  at::Tensor of_cell = at::mul(at::mul(of_hidden, out), tanh_slope(squashed));
  if (present(cell_gradient)) {
    of_cell = at::add(of_cell, *cell_gradient);
  }
  at::Tensor gates = at::cat(
      {at::mul(at::mul(of_cell, candidate), sigmoid_slope(in)),
       at::mul(at::mul(of_cell, cell), sigmoid_slope(forget)),
       at::mul(at::mul(of_cell, in), tanh_slope(candidate)),
       at::mul(at::mul(of_hidden, squashed), sigmoid_slope(out))},
      1);
  at::Tensor bias = sum_over_batch(gates, has_bias);
  return {std::move(gates), at::mul(of_cell, forget), std::move(bias)};
}

std::tuple<at::Tensor, at::Tensor> gru(
    const at::Tensor& input_gates,
    const at::Tensor& hidden_gates,
    const at::Tensor& hidden,
    const Optional& input_bias,
    const Optional& hidden_bias) {
  const auto from_input = at::chunk(with_bias(input_gates, input_bias), 3, 1);
  const auto from_hidden = at::chunk(with_bias(hidden_gates, hidden_bias), 3, 1);
  const at::Tensor reset = at::sigmoid(at::add(from_hidden[0], from_input[0]));
  const at::Tensor in = at::sigmoid(at::add(from_hidden[1], from_input[1]));
  const at::Tensor candidate = at::tanh(at::add(from_input[2], at::mul(from_hidden[2], reset)));
  at::Tensor result = at::add(at::mul(at::sub(hidden, candidate), in), candidate);
  return {std::move(result), at::cat({reset, in, candidate, hidden, from_hidden[2]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_backward(
    const at::Tensor& gradient,
    const at::Tensor& workspace,
    bool has_bias) {
  const auto parts = at::chunk(workspace, 5, 1);
  const at::Tensor &reset = parts[0], &in = parts[1], &candidate = parts[2], &hidden = parts[3],
                   &candidate_from_hidden = parts[4];
  const at::Tensor of_in = at::mul(at::mul(gradient, at::sub(hidden, candidate)), sigmoid_slope(in));
  const at::Tensor of_candidate = at::mul(at::mul(gradient, at::rsub(in, 1)), tanh_slope(candidate));
  const at::Tensor of_reset = at::mul(at::mul(of_candidate, candidate_from_hidden), sigmoid_slope(reset));
  at::Tensor input_gates = at::cat({of_reset, of_in, of_candidate}, 1);
  at::Tensor hidden_gates = at::cat({of_reset, of_in, at::mul(of_candidate, reset)}, 1);
  at::Tensor input_bias = sum_over_batch(input_gates, has_bias);
  at::Tensor hidden_bias = sum_over_batch(hidden_gates, has_bias);
  return {
      std::move(input_gates),
      std::move(hidden_gates),
      at::mul(gradient, in),
      std::move(input_bias),
      std::move(hidden_bias)};
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_thnn_fused_lstm_cell", lstm);
  m.impl("_thnn_fused_lstm_cell_backward_impl", lstm_backward);
  m.impl("_thnn_fused_gru_cell", gru);
  m.impl("_thnn_fused_gru_cell_backward", gru_backward);
}

} // namespace neuron_ref
