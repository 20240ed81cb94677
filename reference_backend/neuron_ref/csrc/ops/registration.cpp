#include "ops/executor.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace neuron_ref {
namespace {

using c10::DispatchKey;

class Kernel final : public c10::OperatorKernel {
 public:
  explicit Kernel(const c10::FunctionSchema& schema) : plan_(schema) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    execute(plan_, op, keys, stack);
  }

 private:
  const Plan plan_;
};

struct KeyPair {
  DispatchKey cpu;
  DispatchKey neuron;
};

constexpr std::array kKeyPairs = {
    KeyPair{DispatchKey::CPU, DispatchKey::PrivateUse1},
    KeyPair{DispatchKey::SparseCPU, DispatchKey::SparsePrivateUse1},
    KeyPair{DispatchKey::SparseCsrCPU, DispatchKey::SparseCsrPrivateUse1},
    KeyPair{DispatchKey::QuantizedCPU, DispatchKey::QuantizedPrivateUse1},
    KeyPair{DispatchKey::NestedTensorCPU, DispatchKey::NestedTensorPrivateUse1},
};

// Operators without a CPU kernel of their own, whose composite one must run as a whole on CPU tensors: it decides by
// device type, or reads memory on the host.
constexpr std::array kComposites = {
    std::string_view("aten::convolution"),
    std::string_view("aten::convolution_backward"),
    std::string_view("aten::_convolution"),
    std::string_view("aten::_saturate_weight_to_fp16"),
};

bool is_executed_namespace(const std::string& name) {
  for (const std::string_view prefix : {"aten::", "quantized::", "_quantized::", "sparse::"}) {
    if (name.compare(0, prefix.size(), prefix) == 0) {
      return true;
    }
  }
  return false;
}

// oneDNN's opaque layout exists on the CPU only.
bool is_excluded(const std::string& name) {
  return name.find("mkldnn") != std::string::npos || name.find("onednn") != std::string::npos;
}

void register_kernel(const c10::OperatorHandle& op, DispatchKey key) {
  // Kept for ever: kernels must not go away while static objects are destroyed.
  static auto* const handles = new std::vector<c10::RegistrationHandleRAII>;
  handles->push_back(c10::Dispatcher::singleton().registerImpl(
      op.operator_name(),
      key,
      c10::KernelFunction::makeFromBoxedFunctor<Kernel>(std::make_unique<Kernel>(op.schema())),
      std::nullopt,
      nullptr,
      "neuron_ref executor"));
}

} // namespace

void register_executor() {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!is_executed_namespace(name.name) || is_excluded(name.name)) {
      continue;
    }
    const auto op = dispatcher.findSchema(name);
    if (!op.has_value()) {
      continue;
    }
    for (const KeyPair& keys : kKeyPairs) {
      if (op->hasKernelForDispatchKey(keys.cpu) && !op->hasKernelForDispatchKey(keys.neuron) &&
          !op->isKernelFallthroughKernel(keys.cpu)) {
        register_kernel(*op, keys.neuron);
      }
    }
    if (std::find(kComposites.begin(), kComposites.end(), name.name) != kComposites.end() &&
        name.overload_name.empty() && !op->hasKernelForDispatchKey(DispatchKey::PrivateUse1)) {
      register_kernel(*op, DispatchKey::PrivateUse1);
    }
  }
}

} // namespace neuron_ref
