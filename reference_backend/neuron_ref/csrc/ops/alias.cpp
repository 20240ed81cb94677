#include "ops/alias.h"

#include "driver/memory.h"
#include "runtime/device_allocator.h"

#include <c10/core/Allocator.h>

namespace neuron_ref {
namespace {

constexpr c10::DispatchKeySet kCpuKey(c10::DispatchKey::CPU);
// What belongs to a tensor's value rather than to its device.
constexpr c10::DispatchKeySet kValueKeys(
    {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor});

c10::intrusive_ptr<c10::StorageImpl> make_cpu_storage(void* pointer, std::size_t bytes, bool resizable) {
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      static_cast<std::int64_t>(bytes),
      c10::DataPtr(pointer, c10::Device(c10::DeviceType::CPU)),
      c10::GetAllocator(c10::DeviceType::CPU),
      resizable);
}

c10::intrusive_ptr<c10::TensorImpl> make_alias(const c10::TensorImpl* tensor, c10::Storage storage) {
  auto alias = c10::make_intrusive<c10::TensorImpl>(
      c10::TensorImpl::VIEW, std::move(storage), kCpuKey | (tensor->key_set() & kValueKeys), tensor->dtype());
  alias->set_storage_offset(tensor->storage_offset());
  alias->set_sizes_and_strides(tensor->sizes(), tensor->strides());
  if (tensor->is_wrapped_number()) {
    alias->set_wrapped_number(true);
  }
  return alias;
}

bool same_view(const c10::TensorImpl* alias, const c10::TensorImpl* tensor) {
  return alias->dtype() == tensor->dtype() && alias->storage_offset() == tensor->storage_offset() &&
      alias->sizes() == tensor->sizes() && alias->strides() == tensor->strides();
}

} // namespace

c10::intrusive_ptr<c10::StorageImpl> shadow_storage(c10::StorageImpl* storage, Block* block) {
  const auto& data = storage->_mutable_data_ptr_no_checks();
  if (block == nullptr) {
    void* pointer = data.get();
    if (pointer != nullptr && driver::is_device_address(pointer)) {
      pointer = driver::open_address(pointer);
    }
    return make_cpu_storage(pointer, storage->nbytes(), storage->resizable());
  }
  c10::StorageImpl* shadow = block->shadow.load(std::memory_order_acquire);
  if (shadow == nullptr) {
    auto created = make_cpu_storage(driver::open_address(block->pointer), storage->nbytes(), true);
    if (block->shadow.compare_exchange_strong(shadow, created.get(), std::memory_order_acq_rel)) {
      shadow = created.release();
    }
  }
  if (shadow->nbytes() != storage->nbytes()) {
    shadow->unsafe_set_nbytes(storage->nbytes());
  }
  return c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(shadow);
}

c10::intrusive_ptr<c10::TensorImpl> AliasSource::take(const at::Tensor& tensor, Block** block) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  *block = nullptr;
  if (C10_UNLIKELY(storage == nullptr)) { // a ZeroTensor has no memory; it may have no storage either
    return make_alias(impl, c10::Storage(make_cpu_storage(nullptr, 0, true)));
  }
  Block* home = block_of(storage->_mutable_data_ptr_no_checks());
  const bool plain = home != nullptr && !impl->key_set().has_any(kValueKeys) && !impl->is_wrapped_number();
  if (C10_LIKELY(plain)) {
    *block = home;
    auto alias =
        c10::intrusive_ptr<c10::TensorImpl>::reclaim(home->alias.exchange(nullptr, std::memory_order_acq_rel));
    if (alias) {
      if (!same_view(alias.get(), impl)) {
        alias->set_storage_and_dtype(alias->unsafe_storage(), impl->dtype());
        alias->set_storage_offset(impl->storage_offset());
        alias->set_sizes_and_strides(impl->sizes(), impl->strides());
      }
      c10::StorageImpl* shadow = alias->unsafe_storage().unsafeGetStorageImpl();
      if (shadow->nbytes() != storage->nbytes()) {
        shadow->unsafe_set_nbytes(storage->nbytes());
      }
      return alias;
    }
  }
  return make_alias(impl, c10::Storage(shadow_storage(storage, home)));
}

void AliasSource::give_back(c10::intrusive_ptr<c10::TensorImpl> alias, Block* block) noexcept {
  if (block == nullptr || alias.use_count() != 1) {
    return;
  }
  c10::TensorImpl* replaced = block->alias.exchange(alias.release(), std::memory_order_acq_rel);
  c10::intrusive_ptr<c10::TensorImpl>::reclaim(replaced);
}

at::Tensor owning_alias(const at::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  TORCH_CHECK(on_device(impl) && is_dense(impl), "a dense neuron tensor is needed, but got one on ", tensor.device());
  const c10::Storage& storage = impl->unsafe_storage();
  void* pointer = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
  auto* keeper = new c10::Storage(storage);
  auto owner = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      static_cast<std::int64_t>(storage.nbytes()),
      c10::DataPtr(
          pointer == nullptr ? nullptr : driver::open_address(pointer),
          keeper,
          [](void* context) { delete static_cast<c10::Storage*>(context); },
          c10::Device(c10::DeviceType::CPU)),
      nullptr,
      false);
  auto alias = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(owner)), kCpuKey | (impl->key_set() & kValueKeys), impl->dtype());
  alias.unsafeGetTensorImpl()->set_storage_offset(impl->storage_offset());
  alias.unsafeGetTensorImpl()->set_sizes_and_strides(impl->sizes(), impl->strides());
  return alias;
}

} // namespace neuron_ref
