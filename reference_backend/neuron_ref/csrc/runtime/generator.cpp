#include "runtime/generator.h"

#include "driver/topology.h"
#include "faults.h"
#include "runtime/check.h"
#include "runtime/device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/TensorBase.h>

#include <array>
#include <cstring>

namespace neuron_ref {
namespace {

constexpr std::int64_t kSeedBytes = sizeof(std::uint64_t);
constexpr std::int64_t kStateBytes = 2 * kSeedBytes;
// Offsets are multiples of four everywhere in PyTorch: Philox makes four numbers at a time.
constexpr std::uint64_t kOffsetStep = 4;

std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

} // namespace

NeuronGenerator::NeuronGenerator(c10::DeviceIndex device)
    : c10::GeneratorImpl(c10::Device(kNeuron, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

c10::DeviceType NeuronGenerator::device_type() {
  return kNeuron;
}

void NeuronGenerator::set_current_seed(std::uint64_t seed) {
  if (!fault(Fault::rng_seed_ignored)) {
    seed_ = seed;
  }
  offset_ = 0;
}

std::uint64_t NeuronGenerator::current_seed() const {
  return seed_;
}

std::uint64_t NeuronGenerator::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom(/*is_cuda=*/true));
  return seed_;
}

void NeuronGenerator::set_offset(std::uint64_t offset) {
  TORCH_CHECK(offset % kOffsetStep == 0, "the offset of a neuron generator must be a multiple of 4, but got ", offset);
  offset_ = offset;
}

std::uint64_t NeuronGenerator::get_offset() const {
  return offset_;
}

void NeuronGenerator::set_state(const c10::TensorImpl& state) {
  at::detail::check_rng_state(state);
  const std::int64_t bytes = state.numel();
  TORCH_CHECK(
      bytes == kStateBytes || bytes == kSeedBytes,
      "RNG state is wrong size: a neuron generator's state has 16 bytes (seed and offset), but got ",
      bytes);
  if (fault(Fault::rng_state_not_restored)) {
    return;
  }
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), state.data(), static_cast<std::size_t>(bytes));
  seed_ = words[0];
  set_offset(words[1]);
}

c10::intrusive_ptr<c10::TensorImpl> NeuronGenerator::get_state() const {
  auto state = at::detail::empty_cpu({kStateBytes}, c10::ScalarType::Byte);
  const std::array<std::uint64_t, 2> words{seed_, fault(Fault::rng_state_truncated) ? 0 : offset_};
  std::memcpy(state.mutable_data_ptr(), words.data(), kStateBytes);
  return state.getIntrusivePtr();
}

at::mt19937 NeuronGenerator::next_engine() {
  // Two rounds of mixing before the stream starts, so that neighbouring seeds and offsets share nothing.
  std::uint64_t state = seed_;
  state = splitmix64(state) ^ offset_;
  state = splitmix64(state);
  at::mt19937_data_pod data{};
  data.seed_ = seed_;
  data.left_ = 1; // the first draw makes a new round of words from these
  data.seeded_ = true;
  data.next_ = 0;
  for (std::size_t index = 0; index < data.state_.size(); index += 2) {
    const std::uint64_t word = splitmix64(state);
    data.state_[index] = static_cast<std::uint32_t>(word);
    data.state_[index + 1] = static_cast<std::uint32_t>(word >> 32);
  }
  at::mt19937 engine;
  engine.set_data(data);
  if (!fault(Fault::rng_does_not_advance)) {
    offset_ += kOffsetStep;
  }
  return engine;
}

NeuronGenerator* NeuronGenerator::clone_impl() const {
  auto* copy = new NeuronGenerator(device().index());
  copy->seed_ = seed_;
  copy->offset_ = offset_;
  return copy;
}

at::Generator new_generator(int device) {
  return at::make_generator<NeuronGenerator>(static_cast<c10::DeviceIndex>(device_or_current(device)));
}

const at::Generator& default_generator(int device) {
  static const auto* const all = [] {
    auto* generators = new std::array<at::Generator, driver::kMaxDevices>; // never destroyed, as PyTorch's own
    for (int index = 0; index < device_count(); ++index) {
      (*generators)[static_cast<std::size_t>(index)] =
          at::make_generator<NeuronGenerator>(static_cast<c10::DeviceIndex>(index));
      (*generators)[static_cast<std::size_t>(index)].seed();
    }
    return generators;
  }();
  check_not_forked();
  return (*all)[static_cast<std::size_t>(device_or_current(device))];
}

} // namespace neuron_ref
