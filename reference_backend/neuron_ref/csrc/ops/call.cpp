#include "ops/call.h"

#include "driver/memory.h"
#include "faults.h"
#include "ops/alias.h"
#include "ops/layouts.h"
#include "ops/random.h"
#include "runtime/cpu_allocator.h"
#include "runtime/device.h"
#include "runtime/device_allocator.h"

#include <ATen/core/List.h>
#include <c10/core/InferenceMode.h>

#include <cstring>

namespace neuron_ref {
namespace {

c10::Device neuron(int index) {
  return {kNeuron, static_cast<c10::DeviceIndex>(index)};
}

// Turns a CPU storage over device memory into a device storage. Results that share a storage share it afterwards too.
void convert_storage(c10::StorageImpl* storage, int device) {
  c10::DataPtr& data = storage->_mutable_data_ptr_no_checks();
  if (data.device().type() == kNeuron) {
    return; // another result of this call has the same storage
  }
  if (Block* block = block_of_cpu_data(data)) {
    data.release_context();
    storage->set_data_ptr_noswap(own_block(block));
  } else {
    // Heap memory: an empty tensor, or one that a kernel made outside the switched allocator.
    const std::size_t bytes = storage->nbytes();
    c10::DataPtr memory = allocate_on(device, data.get() == nullptr ? 0 : bytes);
    if (memory.get() != nullptr) {
      std::memcpy(driver::open_address(memory.get()), data.get(), bytes);
    }
    storage->set_data_ptr_noswap(std::move(memory));
  }
  storage->set_allocator(device_allocator());
}

// A device tensor with the metadata of a CPU tensor, over a device storage.
at::Tensor make_device_tensor(const c10::TensorImpl* like, c10::Storage storage) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), like->dtype());
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_offset(like->storage_offset());
  impl->set_sizes_and_strides(like->sizes(), like->strides());
  if (like->is_conj()) {
    impl->_set_conj(true);
  }
  if (like->is_neg()) {
    impl->_set_neg(true);
  }
  return tensor;
}

} // namespace

Call::~Call() {
  for (Entry& entry : entries_) {
    if (entry.block != nullptr) {
      AliasSource::give_back(entry.alias.unsafeReleaseIntrusivePtr(), entry.block);
    }
  }
}

void Call::check_host_tensor(const Plan::Argument& argument, const at::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (argument.written) {
    writes_cpu_tensor_ = true;
    written_cpu_tensors_.emplace_back(argument.position, tensor);
  }
  if (C10_LIKELY(impl->is_cpu() && impl->dim() == 0 && !argument.written)) {
    return; // a number: every device takes it
  }
  if (plan_.allows_cpu_tensors || fault(Fault::same_device_check_missing)) {
    return;
  }
  const std::string name = plan_.argument_names[argument.position];
  const int device = device_ >= 0 ? device_ : current_device();
  TORCH_CHECK(
      false,
      "Expected all tensors to be on the same device, but found at least two devices, ",
      neuron(device),
      " and ",
      tensor.device(),
      "! (when checking argument for argument ",
      name,
      " in method ",
      plan_.name,
      ")");
}

void Call::join_device(const Plan::Argument& argument, const at::Tensor& tensor) {
  const int device = tensor.unsafeGetTensorImpl()->device().index();
  if (device_ < 0) {
    device_ = device;
    return;
  }
  if (device == device_) {
    return;
  }
  other_devices_.push_back(device);
  TORCH_CHECK(
      plan_.allows_cpu_tensors || fault(Fault::same_device_check_missing),
      "Expected all tensors to be on the same device, but found at least two devices, ",
      neuron(device_),
      " and ",
      neuron(device),
      "! (when checking argument for argument ",
      plan_.argument_names[argument.position],
      " in method ",
      plan_.name,
      ")");
}

at::Tensor Call::to_alias(const at::Tensor& tensor, bool written) {
  constexpr std::size_t kSearched = 16; // beyond, a repeated tensor gets a second alias, which only costs time
  if (entries_.size() <= kSearched) {
    for (Entry& entry : entries_) {
      if (entry.tensor.is_same(tensor)) {
        entry.written |= written;
        return entry.alias;
      }
    }
  }
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  Block* block = nullptr;
  at::Tensor alias;
  if (C10_LIKELY(is_dense(impl))) {
    if (C10_UNLIKELY(written && impl->has_storage() && impl->unsafe_storage().unsafeGetStorageImpl()->has_materializer())) {
      impl->unsafe_storage().unsafeGetStorageImpl()->mutable_data_ptr(); // a lazy clone gets its own memory now
    }
    alias = at::Tensor(AliasSource::take(tensor, &block));
    if (C10_UNLIKELY(plan_.needs_requires_grad && tensor.requires_grad())) {
      alias = owning_alias(tensor);
      alias.set_requires_grad(true);
      block = nullptr;
    }
  } else {
    alias = layout_alias(*this, tensor, written);
    if (plan_.needs_requires_grad && tensor.requires_grad()) {
      alias.set_requires_grad(true);
    }
  }
  entries_.push_back({tensor, alias, block, current_position_, written});
  return alias;
}

at::Tensor Call::convert_tensor(const Plan::Argument& argument, at::Tensor tensor) {
  if (!tensor.defined()) {
    return tensor;
  }
  if (C10_UNLIKELY(!on_device(tensor.unsafeGetTensorImpl()))) {
    check_host_tensor(argument, tensor);
    return tensor;
  }
  join_device(argument, tensor);
  return to_alias(tensor, argument.written);
}

c10::IValue Call::convert(const Plan::Argument& argument, c10::IValue value) {
  current_position_ = argument.position;
  switch (argument.kind) {
    case Plan::Kind::tensor:
      return value.isTensor() ? c10::IValue(convert_tensor(argument, std::move(value).toTensor())) : value;
    case Plan::Kind::tensor_list: {
      if (value.isNone()) {
        return value;
      }
      const c10::List<at::Tensor> original = std::move(value).toTensorList();
      c10::List<at::Tensor> list;
      list.reserve(original.size());
      for (const at::Tensor& tensor : original) {
        list.push_back(convert_tensor(argument, tensor));
      }
      return list;
    }
    case Plan::Kind::optional_tensor_list: {
      if (value.isNone()) {
        return value;
      }
      const auto original = std::move(value).to<c10::List<std::optional<at::Tensor>>>();
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(original.size());
      for (const std::optional<at::Tensor>& tensor : original) {
        list.push_back(tensor.has_value() ? std::optional(convert_tensor(argument, *tensor)) : std::nullopt);
      }
      return list;
    }
    case Plan::Kind::device:
      if (device_ < 0 && value.isDevice() && value.toDevice().type() == kNeuron) {
        device_ = device_or_current(value.toDevice().index());
      }
      return c10::Device(c10::DeviceType::CPU);
    case Plan::Kind::generator:
      return value; // replaced once the device is known
  }
  return value;
}

void Call::prepare(torch::jit::Stack& stack) {
  c10::IValue* const arguments = stack.data() + stack.size() - plan_.argument_count;
  for (const Plan::Argument& argument : plan_.arguments) {
    c10::IValue& value = arguments[argument.position];
    value = convert(argument, std::move(value));
  }
  if (device_ < 0) {
    device_ = current_device();
  }
  for (const Plan::Argument& argument : plan_.arguments) {
    if (C10_UNLIKELY(argument.kind == Plan::Kind::generator)) {
      c10::IValue& value = arguments[argument.position];
      value = cpu_generator(value, device_);
    }
  }
}

void Call::carry_over(const at::Tensor& tensor, const at::Tensor& alias) {
  c10::TensorImpl* target = tensor.unsafeGetTensorImpl();
  const c10::TensorImpl* source = alias.unsafeGetTensorImpl();
  c10::StorageImpl* storage = target->unsafe_storage().unsafeGetStorageImpl();
  c10::StorageImpl* shadow = source->unsafe_storage().unsafeGetStorageImpl();
  if (shadow->nbytes() != storage->nbytes()) {
    // The kernel resized the tensor: the shadow storage now owns fresh memory, which becomes the device storage's.
    const c10::DataPtr& data = shadow->data_ptr();
    c10::DataPtr memory;
    if (Block* block = block_of_cpu_data(data)) {
      shadow->_mutable_data_ptr_no_checks().release_context();
      memory = own_block(block);
    } else {
      memory = allocate_on(target->device().index(), data.get() == nullptr ? 0 : shadow->nbytes());
      if (memory.get() != nullptr) {
        std::memcpy(driver::open_address(memory.get()), data.get(), shadow->nbytes());
      }
    }
    const std::size_t bytes = shadow->nbytes();
    if (Block* old = block_of(storage->_mutable_data_ptr_no_checks())) {
      // What the old block had cached is about the new memory now.
      c10::intrusive_ptr<c10::StorageImpl>::reclaim(old->shadow.exchange(nullptr));
      c10::intrusive_ptr<c10::TensorImpl>::reclaim(old->alias.exchange(nullptr));
    }
    for (Entry& entry : entries_) {
      if (entry.alias.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() == shadow) {
        entry.block = nullptr; // not to be given back
      }
    }
    storage->set_data_ptr_noswap(std::move(memory));
    storage->set_nbytes(bytes);
  }
  if (source->storage_offset() != target->storage_offset()) {
    target->set_storage_offset(source->storage_offset());
  }
  if (source->sizes() != target->sizes() || source->strides() != target->strides()) {
    target->set_sizes_and_strides(source->sizes(), source->strides());
  }
}

at::Tensor Call::adopt(at::Tensor result) {
  c10::TensorImpl* impl = result.unsafeGetTensorImpl();
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  const bool heap = block_of_cpu_data(storage->_mutable_data_ptr_no_checks()) == nullptr &&
      storage->_mutable_data_ptr_no_checks().device().type() != kNeuron;
  if (C10_UNLIKELY(heap && (impl->is_inference() != c10::InferenceMode::is_enabled() || result.use_count() != 1 ||
                            c10::raw::intrusive_ptr::use_count(storage) != 1))) {
    // Someone else has this tensor or its memory too; the device gets a copy.
    auto copy = c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(),
        static_cast<std::int64_t>(storage->nbytes()),
        allocate_on(device_, storage->nbytes()),
        device_allocator(),
        true);
    if (copy->nbytes() != 0 && storage->data_ptr().get() != nullptr) {
      std::memcpy(driver::open_address(copy->data_ptr().get()), storage->data_ptr().get(), storage->nbytes());
    }
    return make_device_tensor(impl, c10::Storage(std::move(copy)));
  }
  convert_storage(storage, device_);
  if (C10_UNLIKELY(impl->is_inference() != c10::InferenceMode::is_enabled())) {
    return make_device_tensor(impl, impl->unsafe_storage());
  }
  impl->set_storage_keep_dtype(impl->unsafe_storage()); // takes over the storage's new device
  impl->_change_backend_component_keys(neuron(device_));
  return result;
}

at::Tensor Call::to_device(at::Tensor result) {
  if (!result.defined()) {
    return result;
  }
  const c10::TensorImpl* impl = result.unsafeGetTensorImpl();
  if (on_device(impl)) {
    return result; // the same result once more
  }
  for (const Entry& entry : entries_) {
    if (entry.alias.unsafeGetTensorImpl() == impl) {
      return entry.tensor;
    }
  }
  if (C10_UNLIKELY(!is_dense(impl))) {
    return layout_to_device(*this, result);
  }
  if (C10_UNLIKELY(impl->key_set().has(c10::DispatchKey::ZeroTensor))) {
    return zero_tensor_to_device(result, device_);
  }
  const c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  for (const Entry& entry : entries_) {
    const c10::TensorImpl* alias = entry.alias.unsafeGetTensorImpl();
    if (alias->has_storage() && alias->unsafe_storage().unsafeGetStorageImpl() == storage && is_dense(alias)) {
      return make_device_tensor(impl, entry.tensor.unsafeGetTensorImpl()->unsafe_storage());
    }
  }
  for (const auto& written : written_cpu_tensors_) {
    if (written.second.unsafeGetTensorImpl() == impl) {
      return result;
    }
  }
  return adopt(std::move(result));
}

void Call::finish(torch::jit::Stack& stack) {
  for (std::size_t index = 0; index < entries_.size(); ++index) {
    if (entries_[index].written) {
      if (C10_LIKELY(is_dense(entries_[index].tensor.unsafeGetTensorImpl()))) {
        carry_over(entries_[index].tensor, entries_[index].alias);
      } else {
        const at::Tensor tensor = entries_[index].tensor; // copies: the parts may add entries
        const at::Tensor alias = entries_[index].alias;
        layout_carry_over(*this, tensor, alias);
      }
    }
  }
  const std::size_t count = static_cast<std::size_t>(plan_.return_count);
  c10::IValue* const results = stack.data() + stack.size() - count;
  for (std::size_t index = 0; index < count; ++index) {
    c10::IValue& value = results[index];
    if (C10_LIKELY(value.isTensor())) {
      if (C10_UNLIKELY((plan_.host_returns >> index) & 1)) {
        const AllocationDevice heap(-1);
        value = copy_to_heap(value.toTensor());
        continue;
      }
      value = to_device(std::move(value).toTensor());
    } else if (value.isTensorList()) {
      const c10::List<at::Tensor> original = std::move(value).toTensorList();
      c10::List<at::Tensor> list;
      list.reserve(original.size());
      for (std::size_t element = 0; element < original.size(); ++element) {
        list.push_back(to_device(original.get(element)));
      }
      value = std::move(list);
    }
  }
}

} // namespace neuron_ref
