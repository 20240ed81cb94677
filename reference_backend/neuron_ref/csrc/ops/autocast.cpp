// Automatic mixed precision for the device: the policy of every operator is the one that torch.autocast("cuda") has.
//
// The lists (AT_FORALL_*) and the casting wrappers (KERNEL_PRIVATEUSEONE) come from the installed torch, so a newer torch
// brings its own lists. The one include below is why this file compiles slowly; nothing else belongs in it.
#include <ATen/autocast_mode.h>

namespace neuron_ref {
namespace {

using namespace at; // the signatures in AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE are spelt from inside at

// CUDA refuses this operator under autocast: in half precision log(1 - p) of a probability near 1 is infinite.
at::Tensor refuse_binary_cross_entropy(
    const at::Tensor& /*self*/,
    const at::Tensor& /*target*/,
    const std::optional<at::Tensor>& /*weight*/,
    int64_t /*reduction*/) {
  TORCH_CHECK(
      false,
      "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast on neuron: the loss of a "
      "probability near 0 or 1 overflows in half precision. Use binary_cross_entropy_with_logits or BCEWithLogitsLoss, "
      "which take the scores before the sigmoid and are safe, or leave autocast for this call.");
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

#define NEURON_REF_LOWER_PRECISION_FP(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define NEURON_REF_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define NEURON_REF_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define NEURON_REF_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(NEURON_REF_LOWER_PRECISION_FP)
  AT_FORALL_FP32(NEURON_REF_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(NEURON_REF_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(NEURON_REF_PROMOTE)
  m.impl("binary_cross_entropy", TORCH_FN(refuse_binary_cross_entropy));
}

} // namespace
} // namespace neuron_ref
