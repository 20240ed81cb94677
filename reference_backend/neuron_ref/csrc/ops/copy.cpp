// Copies between the host and the device, between devices, and within one.
#include "driver/memory.h"
#include "faults.h"
#include "ops/alias.h"
#include "ops/copy_faults.h"
#include "ops/executor.h"
#include "ops/run_scope.h"
#include "runtime/device.h"
#include "runtime/host_allocator.h"
#include "runtime/stream.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/copy_ops.h>
#include <torch/library.h>

#include <exception>
#include <memory>

namespace neuron_ref {
namespace {

// One side of a copy as a CPU tensor; a device side lends its cached alias.
class Side {
 public:
  explicit Side(const at::Tensor& tensor) : device_(on_device(tensor.unsafeGetTensorImpl())) {
    cpu_ = device_ ? at::Tensor(AliasSource::take(tensor, &block_)) : tensor;
  }
  ~Side() {
    if (device_) {
      AliasSource::give_back(cpu_.unsafeReleaseIntrusivePtr(), block_);
    }
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  at::Tensor& cpu() {
    return cpu_;
  }

 private:
  bool device_;
  Block* block_ = nullptr;
  at::Tensor cpu_;
};

// A CPU tensor over someone else's memory: the worker that uses it must not own anything that Python can see, because
// the last owner of such an object needs the interpreter's lock, and whoever waits for the worker may hold that.
at::Tensor borrow(const at::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const c10::Storage& storage = impl->unsafe_storage();
  void* pointer = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
  if (pointer != nullptr && on_device(impl)) {
    pointer = driver::open_address(pointer);
  }
  constexpr c10::DispatchKeySet kValueKeys({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
  auto borrowed = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW,
      c10::Storage(
          c10::Storage::use_byte_size_t(),
          static_cast<std::int64_t>(storage.nbytes()),
          c10::DataPtr(pointer, c10::Device(c10::DeviceType::CPU)),
          nullptr,
          false),
      c10::DispatchKeySet(c10::DispatchKey::CPU) | (impl->key_set() & kValueKeys),
      impl->dtype());
  borrowed.unsafeGetTensorImpl()->set_storage_offset(impl->storage_offset());
  borrowed.unsafeGetTensorImpl()->set_sizes_and_strides(impl->sizes(), impl->strides());
  return borrowed;
}

struct PendingCopy {
  at::Tensor destination;
  at::Tensor source;
};

driver::Status run_pending_copy(void* context) {
  const std::unique_ptr<PendingCopy> copy(static_cast<PendingCopy*>(context));
  try {
    const RunScope scope(-1);
    at::_ops::copy_::call(copy->destination, copy->source, false);
    return driver::Status::ok;
  } catch (const std::exception&) {
    return driver::Status::task_failed;
  }
}

const c10::DataPtr& data_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
}

// Whether the copy can be left to the stream: the host side is pinned, and nothing can fail once it is enqueued.
bool can_be_deferred(const at::Tensor& destination, const at::Tensor& source) {
  const at::Tensor& host = on_device(destination.unsafeGetTensorImpl()) ? source : destination;
  return destination.sizes() == source.sizes() && host.has_storage() && is_pinned(data_of(host).get());
}

bool defer(const at::Tensor& destination, const at::Tensor& source, int device) {
  const at::Tensor& host = on_device(destination.unsafeGetTensorImpl()) ? source : destination;
  const c10::Stream stream = to_c10_stream(device, current_stream_index(device));
  if (!record_pinned_use(data_of(host), stream)) {
    return false; // nothing would keep the host memory from being used again too early
  }
  auto copy = std::make_unique<PendingCopy>(PendingCopy{borrow(destination), borrow(source)});
  if (fault(Fault::nonblocking_runs_before_stream)) {
    run_pending_copy(copy.release());
    return true;
  }
  const driver::Status status = driver::enqueue(to_driver_stream(stream), run_pending_copy, copy.get());
  if (status != driver::Status::ok) {
    return false;
  }
  static_cast<void>(copy.release());
  return true;
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (self.is_same(source)) {
    return self;
  }
  TORCH_CHECK(self.defined() && source.defined(), "copy_: both tensors must be defined");
  const bool to_device = on_device(self.unsafeGetTensorImpl());
  const bool from_device = on_device(source.unsafeGetTensorImpl());
  for (const at::Tensor* tensor : {static_cast<const at::Tensor*>(&self), &source}) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        (on_device(tensor->unsafeGetTensorImpl()) || tensor->is_cpu()) && tensor->layout() == c10::Layout::Strided,
        "copy_ from ",
        source.device(),
        " (",
        source.layout(),
        ") to ",
        self.device(),
        " (",
        self.layout(),
        ") is not supported");
  }
  count_op("aten::copy_");
  const int device = (to_device ? self : source).device().index();
  if (to_device != from_device && non_blocking && self.numel() != 0 && !fault(Fault::nonblocking_blocks) &&
      can_be_deferred(self, source) && defer(self, source, device)) {
    return self;
  }
  for (const at::Tensor* tensor : {static_cast<const at::Tensor*>(&self), &source}) {
    if (on_device(tensor->unsafeGetTensorImpl())) {
      synchronize_stream(current_stream(tensor->device().index()), "aten::copy_");
    }
  }
  if (C10_UNLIKELY(self.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->has_materializer())) {
    self.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->mutable_data_ptr();
  }
  Side to(self);
  Side from(source);
  const RunScope scope(to_device ? device : -1);
  if (C10_UNLIKELY(any_fault())) {
    faulty_copy(self, source, to.cpu(), from.cpu());
  } else {
    at::_ops::copy_::call(to.cpu(), from.cpu(), false);
  }
  return self;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("copy_", copy_);
}

} // namespace neuron_ref
