#pragma once

#include <ATen/core/ivalue.h>

#include <memory>

namespace neuron_ref {

// The CPU generator for one operator call: seeded from the state of the device generator that the caller gave (or of
// the device's default one), whose offset moves on. Raises for a generator of another device type.
c10::IValue cpu_generator(const c10::IValue& generator, int device);

// For operators that draw random numbers but take no generator: while it lives, the CPU's default generator runs on
// an engine made from the device's default generator, and its own state is put back afterwards.
class BorrowedDefaultGenerator {
 public:
  explicit BorrowedDefaultGenerator(int device);
  ~BorrowedDefaultGenerator();
  BorrowedDefaultGenerator(const BorrowedDefaultGenerator&) = delete;
  BorrowedDefaultGenerator& operator=(const BorrowedDefaultGenerator&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;
};

} // namespace neuron_ref
