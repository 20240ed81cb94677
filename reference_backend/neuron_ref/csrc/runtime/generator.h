#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

namespace neuron_ref {

// A counter-based generator: its whole state is a seed and an offset. Each random operator draws from a CPU engine
// that is a function of both, and moves the offset on.
class NeuronGenerator final : public c10::GeneratorImpl {
 public:
  explicit NeuronGenerator(c10::DeviceIndex device);

  static c10::DeviceType device_type();

  void set_current_seed(std::uint64_t seed) override;
  std::uint64_t current_seed() const override;
  std::uint64_t seed() override;
  void set_offset(std::uint64_t offset) override;
  std::uint64_t get_offset() const override;
  // 16 bytes on the CPU: the seed, then the offset. 8 bytes (a seed, offset 0) are accepted too.
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // The engine for the next operator; moves the offset on.
  at::mt19937 next_engine();

 private:
  NeuronGenerator* clone_impl() const override;

  std::uint64_t seed_ = c10::default_rng_seed_val;
  std::uint64_t offset_ = 0;
};

const at::Generator& default_generator(int device);
at::Generator new_generator(int device);

} // namespace neuron_ref
