#include "ops/result_faults.h"

#include "driver/memory.h"
#include "faults.h"
#include "ops/alias.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <limits>

namespace neuron_ref {
namespace {

template <class Value>
Value* first_element(const at::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  void* pointer = impl->unsafe_storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
  return static_cast<Value*>(driver::open_address(pointer)) + impl->storage_offset();
}

// Autograd raises the version of a written tensor after the kernel; lowered by one here, it stays what it was. Fresh
// results start at one, so that there is something to lower.
void hold_version(const at::Tensor& tensor, bool fresh) {
  auto version = tensor.unsafeGetTensorImpl()->version_counter();
  if (!version.enabled()) {
    return;
  }
  if (fresh) {
    version.set_version(1);
  } else if (version.current_version() > 0) {
    version.set_version(static_cast<std::int64_t>(version.current_version()) - 1);
  }
}

void transpose_strides(const at::Tensor& tensor) {
  const auto sizes = tensor.sizes().vec();
  if (sizes.size() == 2 && sizes[0] > 1 && sizes[1] > 1 && tensor.is_contiguous()) {
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, std::vector<std::int64_t>{1, sizes[0]});
  }
}

} // namespace

void apply_result_faults(const Plan& plan, torch::jit::Stack& stack) {
  if (plan.return_count == 0 || !stack.back().isTensor()) {
    return;
  }
  const at::Tensor& result = stack.back().toTensor();
  if (!result.defined() || !on_device(result.unsafeGetTensorImpl()) || !is_dense(result.unsafeGetTensorImpl()) ||
      !result.has_storage() || result.numel() == 0) {
    return;
  }
  if (fault(Fault::inplace_no_version_bump)) {
    hold_version(result, plan.is_functional);
  }
  if (fault(Fault::wrong_stride_output) && plan.is_functional) {
    transpose_strides(result);
  }
  if (fault(Fault::add_off_by_ulp) && plan.is_float_add && result.scalar_type() == c10::ScalarType::Float) {
    float* value = first_element<float>(result);
    *value = std::nextafter(*value, std::numeric_limits<float>::infinity());
  }
  if (fault(Fault::sum_wrong_for_int64) && plan.is_sum && result.scalar_type() == c10::ScalarType::Long) {
    ++*first_element<std::int64_t>(result);
  }
}

} // namespace neuron_ref
