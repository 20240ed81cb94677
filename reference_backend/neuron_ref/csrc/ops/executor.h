#pragma once

#include "ops/plan.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <map>
#include <string>

namespace neuron_ref {

// Runs an operator's CPU kernel on the device tensors of the stack: prepare, enqueue, run.
void execute(const Plan& plan, const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// Registers the executor for every operator that has a CPU kernel and no kernel of our own.
void register_executor();

// Counting of executed operators; off until switched on.
void count_ops(bool enabled);
std::map<std::string, std::int64_t> executed_ops(bool reset);
void count_op(const std::string& name);

} // namespace neuron_ref
