#include "runtime/storage.h"

#include "driver/memory.h"
#include "faults.h"
#include "runtime/device_allocator.h"
#include "runtime/stream.h"

#include <algorithm>
#include <cstring>

namespace neuron_ref {

void resize_storage(c10::StorageImpl* storage, std::size_t bytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  const int device = storage->device().index();
  c10::DataPtr memory = allocate_on(device, bytes);
  const c10::DataPtr& old = storage->data_ptr();
  const std::size_t kept = std::min(bytes, storage->nbytes());
  if (kept != 0 && old.get() != nullptr) {
    synchronize_stream(current_stream(device), "resizing a storage");
    if (C10_UNLIKELY(fault(Fault::resize_loses_data))) {
      std::memset(driver::open_address(memory.get()), 0, bytes);
    } else {
      std::memcpy(driver::open_address(memory.get()), driver::open_address(old.get()), kept);
    }
  }
  storage->set_data_ptr_noswap(std::move(memory));
  storage->set_nbytes(bytes);
}

} // namespace neuron_ref
