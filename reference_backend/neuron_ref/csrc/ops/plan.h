#pragma once

#include <ATen/core/function_schema.h>

#include <cstdint>
#include <string>
#include <vector>

namespace neuron_ref {

// What the executor has to do for one operator, worked out once from its schema.
struct Plan {
  enum class Kind : std::uint8_t { tensor, tensor_list, optional_tensor_list, generator, device };

  struct Argument {
    std::uint16_t position;
    Kind kind;
    bool written;
  };

  explicit Plan(const c10::FunctionSchema& schema);

  std::string name; // with overload, for messages and counts
  std::vector<Argument> arguments; // only those that the executor touches
  std::vector<std::string> argument_names; // of all arguments
  std::uint16_t argument_count;
  std::uint16_t return_count;
  bool needs_requires_grad = false; // the CPU kernel reads requires_grad of its arguments
  bool allows_cpu_tensors = false; // CPU tensors are part of the operator's contract
  bool draws_from_default_generator = false; // random, but takes no generator
  std::uint32_t host_returns = 0; // bit per return that stays on the CPU by contract
  bool is_functional = false; // returns fresh tensors only
  bool is_float_add = false; // for faults only
  bool is_sum = false; // for faults only
};

} // namespace neuron_ref
