#pragma once

#include "ops/plan.h"
#include "runtime/block.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

namespace neuron_ref {

// One call of an operator: the device tensors among its arguments, each with the CPU tensor that stands for it, and
// the way back from CPU results to device tensors.
class Call {
 public:
  explicit Call(const Plan& plan) : plan_(plan) {}
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Phase 1. Replaces the arguments on the stack by what the CPU kernel gets, and checks that the devices agree.
  void prepare(torch::jit::Stack& stack);

  // Phase 3, after the kernel. Carries over what the kernel changed in the tensors it wrote to (sizes, memory), and
  // replaces CPU results on the stack by device tensors.
  void finish(torch::jit::Stack& stack);

  // The device that results go to.
  int device() const noexcept {
    return device_;
  }

  // Where the kernel's allocations go: the device, or -1 (the heap) when it writes to a CPU tensor.
  int allocation_device() const noexcept {
    return writes_cpu_tensor_ ? -1 : device_;
  }

  // Devices that take part beside device(); only copies have any.
  const c10::SmallVector<int, 1>& other_devices() const noexcept {
    return other_devices_;
  }

  // The CPU tensor that stands for a device tensor. Layouts other than dense stand for their parts.
  at::Tensor to_alias(const at::Tensor& tensor, bool written);

  // The device tensor for a CPU result.
  at::Tensor to_device(at::Tensor result);

  // Called by the layouts for the parts of a tensor that was written to.
  void carry_over(const at::Tensor& device_tensor, const at::Tensor& alias);

 private:
  struct Entry {
    at::Tensor tensor; // on the device
    at::Tensor alias;
    Block* block; // where the alias came from, or null
    std::uint16_t position;
    bool written;
  };

  c10::IValue convert(const Plan::Argument& argument, c10::IValue value);
  at::Tensor convert_tensor(const Plan::Argument& argument, at::Tensor tensor);
  void check_host_tensor(const Plan::Argument& argument, const at::Tensor& tensor);
  void join_device(const Plan::Argument& argument, const at::Tensor& tensor);
  at::Tensor adopt(at::Tensor result);

  const Plan& plan_;
  c10::SmallVector<Entry, 4> entries_;
  c10::SmallVector<std::pair<std::uint16_t, at::Tensor>, 1> written_cpu_tensors_;
  c10::SmallVector<int, 1> other_devices_;
  std::uint16_t current_position_ = 0;
  int device_ = -1;
  bool writes_cpu_tensor_ = false;
};

} // namespace neuron_ref
