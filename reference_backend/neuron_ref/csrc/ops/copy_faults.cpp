#include "ops/copy_faults.h"

#include "driver/memory.h"
#include "faults.h"
#include "ops/alias.h"

#include <ATen/ops/as_strided.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace neuron_ref {
namespace {

char* last_element(const at::Tensor& tensor) {
  std::int64_t index = 0;
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    index += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  return static_cast<char*>(tensor.data_ptr()) + index * static_cast<std::int64_t>(tensor.element_size());
}

// The same place, but in the memory of the destination's device.
at::Tensor in_memory_of(const at::Tensor& destination, const at::Tensor& source, const at::Tensor& from) {
  const auto distance =
      (static_cast<std::int64_t>(destination.device().index()) - source.device().index()) *
      static_cast<std::int64_t>(driver::windows().device_bytes);
  return at::from_blob(
      static_cast<char*>(from.data_ptr()) + distance, from.sizes(), from.strides(), from.options());
}

} // namespace

void faulty_copy(const at::Tensor& destination, const at::Tensor& source, at::Tensor& to, const at::Tensor& given) {
  at::Tensor from = given;
  const bool to_device = on_device(destination.unsafeGetTensorImpl());
  const bool from_device = on_device(source.unsafeGetTensorImpl());
  if (fault(Fault::copy_ignores_storage_offset) && from.storage_offset() != 0) {
    from = at::as_strided(from, from.sizes(), from.strides(), 0);
  }
  if (fault(Fault::d2d_copies_wrong_device) && to_device && from_device && destination.device() != source.device()) {
    from = in_memory_of(destination, source, from);
  }
  std::vector<char> kept;
  if (fault(Fault::copy_drops_last_element) && to.numel() > 1) {
    const char* last = last_element(to);
    kept.assign(last, last + to.element_size());
  }
  at::_ops::copy_::call(to, from, false);
  if (!kept.empty()) {
    std::memcpy(last_element(to), kept.data(), kept.size());
  }
  if (fault(Fault::copy_rounds_to_bfloat16) && !to_device && to.scalar_type() == c10::ScalarType::Float &&
      to.is_contiguous()) {
    auto* words = static_cast<std::uint32_t*>(to.data_ptr());
    for (std::int64_t index = 0; index < to.numel(); ++index) {
      words[index] &= 0xffff0000u;
    }
  }
}

} // namespace neuron_ref
