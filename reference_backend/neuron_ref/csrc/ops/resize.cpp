// Changes of a device tensor's size and storage. PyTorch's own kernels would move the contents on the host.
#include "runtime/device.h"
#include "runtime/device_allocator.h"
#include "runtime/storage.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace neuron_ref {
namespace {

// Makes room for a view of the storage; a storage only grows.
void grow_storage(c10::TensorImpl* impl, std::size_t bytes) {
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  if (bytes > storage->nbytes()) {
    resize_storage(storage, bytes);
  }
}

const at::Tensor& resize_(
    const at::Tensor& self,
    c10::IntArrayRef sizes,
    std::optional<c10::MemoryFormat> memory_format) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  if (impl->sizes() != sizes) {
    at::detail::check_size_nonnegative(sizes);
    const std::size_t itemsize = self.dtype().itemsize();
    grow_storage(
        impl,
        at::detail::computeStorageNbytesContiguous(sizes, itemsize, static_cast<std::size_t>(self.storage_offset())));
    impl->set_sizes_contiguous(sizes);
  }
  if (memory_format.has_value()) {
    TORCH_CHECK(
        *memory_format != c10::MemoryFormat::Preserve, "Unsupported memory format ", *memory_format, " for resize_");
    impl->empty_tensor_restride(*memory_format);
  }
  return self;
}

void set_view(
    const at::Tensor& self,
    c10::Storage storage,
    std::int64_t offset,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  TORCH_CHECK(
      storage.device().type() == kNeuron,
      "Expected a storage on neuron for set_, but got one on ",
      storage.device());
  TORCH_CHECK(
      impl->unsafe_storage().unsafeGetStorageImpl() == nullptr || self.device() == storage.device(),
      "Attempted to set the storage of a tensor on device \"",
      self.device(),
      "\" to a storage on different device \"",
      storage.device(),
      "\". This is no longer allowed; the devices must match.");
  TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  TORCH_CHECK(
      strides.empty() || strides.size() == sizes.size(),
      "unequal size length (",
      sizes.size(),
      ") and stride length (",
      strides.size(),
      ")");
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  if (strides.empty() && !sizes.empty()) {
    impl->set_sizes_contiguous(sizes);
  } else {
    impl->set_sizes_and_strides(sizes, strides);
  }
  grow_storage(
      impl,
      at::detail::computeStorageNbytes(
          impl->sizes(), impl->strides(), self.dtype().itemsize(), static_cast<std::size_t>(offset)));
}

at::Tensor& set_storage_view(
    at::Tensor& self,
    c10::Storage source,
    std::int64_t offset,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides) {
  set_view(self, std::move(source), offset, sizes, strides);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, c10::Storage source) {
  const auto elements = static_cast<std::int64_t>(source.nbytes() / self.dtype().itemsize());
  set_view(self, std::move(source), 0, {elements}, {});
  return self;
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (!self.is_same(source)) {
    TORCH_CHECK(
        self.dtype() == source.dtype(),
        "Could not set tensor of type ",
        source.dtype(),
        " to a tensor of type ",
        self.dtype());
    set_view(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
  }
  return self;
}

at::Tensor& set_empty(at::Tensor& self) {
  c10::Storage storage(
      c10::Storage::use_byte_size_t(),
      0,
      allocate_on(self.device().index(), 0),
      device_allocator(),
      /*resizable=*/true);
  set_view(self, std::move(storage), 0, {0}, {});
  return self;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("resize_", resize_);
  m.impl("set_.source_Storage_storage_offset", set_storage_view);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("set_", set_empty);
}

} // namespace neuron_ref
