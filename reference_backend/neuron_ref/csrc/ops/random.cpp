#include "ops/random.h"

#include "faults.h"
#include "runtime/device.h"
#include "runtime/generator.h"

#include <ATen/core/ivalue_inl.h>

#include <mutex>

namespace neuron_ref {
namespace {

std::mutex& default_generator_mutex() {
  static auto* const instance = new std::mutex;
  return *instance;
}

at::mt19937 next_engine(const at::Generator& generator) {
  auto* impl = static_cast<NeuronGenerator*>(generator.unsafeGetGeneratorImpl());
  const std::lock_guard<std::mutex> lock(impl->mutex_);
  return impl->next_engine();
}

} // namespace

c10::IValue cpu_generator(const c10::IValue& generator, int device) {
  at::Generator source;
  if (!generator.isNone()) {
    source = generator.toGenerator();
  }
  if (source.defined()) {
    TORCH_CHECK(
        source.device().type() == kNeuron,
        "Expected a 'neuron' device type for generator but found '",
        source.device().type(),
        "'");
  }
  if (!source.defined() || fault(Fault::rng_generator_ignored)) {
    source = default_generator(device);
  }
  auto result = at::make_generator<at::CPUGeneratorImpl>();
  result.get<at::CPUGeneratorImpl>()->set_engine(next_engine(source));
  return result;
}

struct BorrowedDefaultGenerator::Saved {
  std::unique_lock<std::mutex> lock;
  at::mt19937 engine;
  std::optional<float> next_float;
  std::optional<double> next_double;
};

BorrowedDefaultGenerator::BorrowedDefaultGenerator(int device) : saved_(std::make_unique<Saved>()) {
  saved_->lock = std::unique_lock<std::mutex>(default_generator_mutex());
  const at::Generator& cpu = at::detail::getDefaultCPUGenerator();
  auto* impl = cpu.get<at::CPUGeneratorImpl>();
  const std::lock_guard<std::mutex> lock(impl->mutex_);
  saved_->engine = impl->engine();
  saved_->next_float = impl->next_float_normal_sample();
  saved_->next_double = impl->next_double_normal_sample();
  impl->set_engine(next_engine(default_generator(device)));
  impl->set_next_float_normal_sample(std::nullopt);
  impl->set_next_double_normal_sample(std::nullopt);
}

BorrowedDefaultGenerator::~BorrowedDefaultGenerator() {
  auto* impl = at::detail::getDefaultCPUGenerator().get<at::CPUGeneratorImpl>();
  const std::lock_guard<std::mutex> lock(impl->mutex_);
  impl->set_engine(saved_->engine);
  impl->set_next_float_normal_sample(saved_->next_float);
  impl->set_next_double_normal_sample(saved_->next_double);
}

} // namespace neuron_ref
