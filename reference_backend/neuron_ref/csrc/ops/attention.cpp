// Scaled dot product attention. PyTorch takes its CPU flash kernel for CPU tensors only; an accelerator gets the same
// kernel through the "overrideable" backend, so that results and memory use do not depend on the device.
#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <array>
#include <tuple>

namespace neuron_ref {
namespace {

std::int64_t choose_backend(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout,
    bool causal,
    std::optional<double> scale,
    bool enable_gqa) {
  // The rules look at shapes, dtypes and switches, never at the contents.
  const auto choice =
      at::native::_fused_sdp_choice_cpp(query, key, value, mask, dropout, causal, scale, enable_gqa);
  return choice == static_cast<std::int64_t>(at::SDPBackend::flash_attention)
      ? static_cast<std::int64_t>(at::SDPBackend::overrideable)
      : choice;
}

using Forward = std::tuple<
    at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor>;

Forward forward(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout,
    bool causal,
    bool,
    std::optional<double> scale) {
  auto [output, logsumexp] =
      at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout, causal, mask, scale);
  // The kernel draws no random numbers (it declines dropout), but the interface wants a state.
  const at::Tensor no_state = at::zeros({}, query.options().dtype(c10::ScalarType::Long));
  return {
      std::move(output),
      std::move(logsumexp),
      at::Tensor(),
      at::Tensor(),
      query.sym_size(2),
      key.sym_size(2),
      no_state,
      no_state,
      at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> backward(
    const at::Tensor& gradient,
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const at::Tensor& mask,
    std::array<bool, 4>,
    const at::Tensor& output,
    const at::Tensor& logsumexp,
    const at::Tensor&,
    const at::Tensor&,
    c10::SymInt,
    c10::SymInt,
    double dropout,
    bool causal,
    const at::Tensor&,
    const at::Tensor&,
    std::optional<double> scale) {
  auto [query_gradient, key_gradient, value_gradient] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      gradient,
      query,
      key,
      value,
      output,
      logsumexp,
      dropout,
      causal,
      mask.defined() ? std::optional<at::Tensor>(mask) : std::nullopt,
      scale);
  // A mask that needs a gradient never comes here: choose_backend sends it to the composite implementation.
  return {std::move(query_gradient), std::move(key_gradient), std::move(value_gradient), at::Tensor()};
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_sdp_choice", choose_backend);
  m.impl("_scaled_dot_product_fused_attention_overrideable", forward);
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward", backward);
}

} // namespace neuron_ref

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &neuron_ref::choose_backend)
} // namespace at::native
