#pragma once

#include <c10/core/StorageImpl.h>

namespace neuron_ref {

// Gives a device storage a new size in bytes and keeps what fits of its contents. Waits for the current stream.
void resize_storage(c10::StorageImpl* storage, std::size_t bytes);

} // namespace neuron_ref
