#include "ops/layouts.h"

#include "ops/zero_tensor.h"
#include "runtime/device.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/clone.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>

namespace neuron_ref {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

bool has(const at::Tensor& tensor, DispatchKey functionality) {
  return tensor.key_set().has_any(DispatchKeySet(functionality));
}

at::SparseTensorImpl* sparse(const at::Tensor& tensor) {
  return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::SparseCsrTensorImpl* compressed(const at::Tensor& tensor) {
  return static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::native::NestedTensorImpl* nested(const at::Tensor& tensor) {
  return static_cast<at::native::NestedTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::QTensorImpl* quantized(const at::Tensor& tensor) {
  return static_cast<at::QTensorImpl*>(tensor.unsafeGetTensorImpl());
}

// Translates one tensor from a device to the other side; the layouts below are the same in both directions.
template <class Part>
at::Tensor convert(const at::Tensor& tensor, c10::Device device, const Part& part) {
  const bool to_neuron = device.type() == kNeuron;
  if (has(tensor, DispatchKey::Sparse)) {
    auto result = at::detail::make_tensor<at::SparseTensorImpl>(
        DispatchKeySet(to_neuron ? DispatchKey::SparsePrivateUse1 : DispatchKey::SparseCPU), tensor.dtype());
    at::SparseTensorImpl* from = sparse(tensor);
    at::SparseTensorImpl* to = sparse(result);
    to->raw_resize_(from->sparse_dim(), from->dense_dim(), from->sizes());
    to->set_indices_and_values_unsafe(part(from->indices_), part(from->values_));
    to->set_coalesced(from->coalesced());
    return result;
  }
  if (has(tensor, DispatchKey::SparseCsr)) {
    auto result = at::detail::make_tensor<at::SparseCsrTensorImpl>(
        DispatchKeySet(to_neuron ? DispatchKey::SparseCsrPrivateUse1 : DispatchKey::SparseCsrCPU),
        device,
        tensor.layout(),
        tensor.dtype());
    at::SparseCsrTensorImpl* from = compressed(tensor);
    compressed(result)->set_member_tensors(
        part(from->crow_indices_), part(from->col_indices_), part(from->values_), from->sizes());
    return result;
  }
  if (has(tensor, DispatchKey::NestedTensor)) {
    const at::Tensor buffer = part(nested(tensor)->get_unsafe_storage_as_tensor());
    // Sizes, strides and offsets lie on the host for every device.
    return at::detail::make_tensor<at::native::NestedTensorImpl>(
        c10::Storage(buffer.storage()),
        DispatchKeySet(to_neuron ? DispatchKey::NestedTensorPrivateUse1 : DispatchKey::NestedTensorCPU),
        tensor.dtype(),
        nested(tensor)->get_nested_sizes(),
        nested(tensor)->get_nested_strides(),
        nested(tensor)->get_storage_offsets());
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "neuron tensors of layout ", tensor.layout(), " are not supported");
}

// A dense tensor over the same bytes as a quantized one.
at::Tensor quantized_bytes(const at::Tensor& tensor) {
  auto bytes = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW,
      c10::Storage(tensor.storage()),
      DispatchKeySet(tensor.device().type() == kNeuron ? DispatchKey::PrivateUse1 : DispatchKey::CPU),
      tensor.dtype());
  bytes.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  bytes.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return bytes;
}

// Per-channel quantizers hold tensors, which move along.
template <class Part>
at::QuantizerPtr convert_quantizer(const at::QuantizerPtr& quantizer, const Part& part) {
  switch (quantizer->qscheme()) {
    case c10::kPerChannelAffine: {
      const auto* per_channel = static_cast<const at::PerChannelAffineQuantizer*>(quantizer.get());
      return at::make_per_channel_affine_quantizer(
          part(per_channel->scales()),
          part(per_channel->zero_points()),
          per_channel->axis(),
          per_channel->scalar_type());
    }
    case c10::kPerChannelAffineFloatQParams: {
      const auto* per_channel = static_cast<const at::PerChannelAffineFloatQParamsQuantizer*>(quantizer.get());
      return c10::make_intrusive<at::PerChannelAffineFloatQParamsQuantizer>(
          per_channel->scalar_type(),
          part(per_channel->scales()),
          part(per_channel->zero_points()),
          per_channel->axis());
    }
    default:
      return quantizer;
  }
}

template <class Part>
at::Tensor convert_quantized(const at::Tensor& tensor, c10::Device device, const Part& part) {
  const at::Tensor bytes = part(quantized_bytes(tensor));
  const bool to_neuron = device.type() == kNeuron;
  auto result = at::detail::make_tensor<at::QTensorImpl>(
      c10::Storage(bytes.storage()),
      DispatchKeySet(to_neuron ? DispatchKey::QuantizedPrivateUse1 : DispatchKey::QuantizedCPU),
      tensor.dtype(),
      convert_quantizer(quantized(tensor)->quantizer(), part));
  result.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return result;
}

} // namespace

at::Tensor layout_alias(Call& call, const at::Tensor& tensor, bool written) {
  const c10::Device cpu(c10::DeviceType::CPU);
  const auto part = [&](const at::Tensor& component) {
    return component.defined() && component.device().type() == kNeuron ? call.to_alias(component, written) : component;
  };
  return has(tensor, DispatchKey::Quantized) ? convert_quantized(tensor, cpu, part) : convert(tensor, cpu, part);
}

at::Tensor layout_to_device(Call& call, const at::Tensor& result) {
  const c10::Device device(kNeuron, static_cast<c10::DeviceIndex>(call.device()));
  const auto part = [&](const at::Tensor& component) { return call.to_device(component); };
  return has(result, DispatchKey::Quantized) ? convert_quantized(result, device, part)
                                             : convert(result, device, part);
}

void layout_carry_over(Call& call, const at::Tensor& tensor, const at::Tensor& alias) {
  if (has(tensor, DispatchKey::Sparse)) {
    at::SparseTensorImpl* from = sparse(alias);
    at::SparseTensorImpl* to = sparse(tensor);
    to->raw_resize_(from->sparse_dim(), from->dense_dim(), from->sizes());
    to->set_indices_and_values_unsafe(call.to_device(from->indices_), call.to_device(from->values_));
    to->set_coalesced(from->coalesced());
  } else if (has(tensor, DispatchKey::SparseCsr)) {
    at::SparseCsrTensorImpl* from = compressed(alias);
    compressed(tensor)->set_member_tensors(
        call.to_device(from->crow_indices_),
        call.to_device(from->col_indices_),
        call.to_device(from->values_),
        from->sizes());
  } else if (has(tensor, DispatchKey::Quantized)) {
    quantized(tensor)->set_quantizer_(convert_quantizer(
        quantized(alias)->quantizer(), [&](const at::Tensor& component) { return call.to_device(component); }));
    if (alias.sizes() != tensor.sizes() || alias.strides() != tensor.strides()) {
      tensor.unsafeGetTensorImpl()->set_sizes_and_strides(alias.sizes(), alias.strides());
    }
  }
  // A nested tensor's memory is carried over by its buffer; its sizes cannot change in place.
}

at::Tensor zero_tensor_to_device(const at::Tensor& result, int device) {
  return make_zero_tensor(result.sizes(), result.scalar_type(), device);
}

at::Tensor copy_to_heap(const at::Tensor& tensor) {
  return tensor.defined() ? at::clone(tensor) : tensor;
}

} // namespace neuron_ref
