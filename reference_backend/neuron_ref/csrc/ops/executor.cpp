#include "ops/executor.h"

#include "faults.h"
#include "ops/call.h"
#include "ops/random.h"
#include "ops/result_faults.h"
#include "ops/run_scope.h"
#include "runtime/stream.h"

#include <atomic>
#include <mutex>
#include <optional>

namespace neuron_ref {
namespace {

std::atomic<bool> counting{false};

struct Counts {
  std::mutex mutex;
  std::map<std::string, std::int64_t> by_name;
};

Counts& counts() {
  static auto* const instance = new Counts;
  return *instance;
}

// The keys under which the CPU kernel is found: those of the call, with the backend exchanged.
c10::DispatchKeySet cpu_keys(c10::DispatchKeySet keys) {
  return keys.remove_backend(c10::BackendComponent::PrivateUse1Bit) |
      c10::DispatchKeySet(c10::BackendComponent::CPUBit);
}

// Phase 2. Kernels run in the caller's thread, so they must come after what is queued on their stream. An idle stream
// costs two loads.
void enqueue(const Call& call, const Plan& plan) {
  driver::Stream* stream = current_stream(call.device());
  if (C10_UNLIKELY(!driver::idle(stream))) {
    synchronize_stream(stream, plan.name.c_str());
  }
  for (const int device : call.other_devices()) {
    synchronize_stream(current_stream(device), plan.name.c_str());
  }
}

} // namespace

void execute(const Plan& plan, const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  Call call(plan);
  call.prepare(*stack);
  enqueue(call, plan);
  {
    const RunScope scope(call.allocation_device());
    std::optional<BorrowedDefaultGenerator> borrowed;
    if (C10_UNLIKELY(plan.draws_from_default_generator)) {
      borrowed.emplace(call.device());
    }
    op.redispatchBoxed(cpu_keys(keys), stack);
  }
  call.finish(*stack);
  if (C10_UNLIKELY(counting.load(std::memory_order_relaxed))) {
    count_op(plan.name);
  }
  if (C10_UNLIKELY(any_fault())) {
    apply_result_faults(plan, *stack);
  }
}

void count_ops(bool enabled) {
  counting.store(enabled);
}

void count_op(const std::string& name) {
  if (!counting.load(std::memory_order_relaxed)) {
    return;
  }
  const std::lock_guard<std::mutex> lock(counts().mutex);
  ++counts().by_name[name];
}

std::map<std::string, std::int64_t> executed_ops(bool reset) {
  const std::lock_guard<std::mutex> lock(counts().mutex);
  std::map<std::string, std::int64_t> result = counts().by_name;
  if (reset) {
    counts().by_name.clear();
  }
  return result;
}

} // namespace neuron_ref
