#pragma once

#include "ops/plan.h"

#include <ATen/core/stack.h>

namespace neuron_ref {

// Makes the results of an operator wrong in the ways that are switched on.
void apply_result_faults(const Plan& plan, torch::jit::Stack& stack);

} // namespace neuron_ref
