#pragma once

#include "driver/stream.h"

#include <c10/core/Stream.h>

namespace neuron_ref {

// The index of the calling thread's current stream of a device; 0 is the default stream.
int current_stream_index(int device) noexcept;

// The driver's object behind it.
driver::Stream* current_stream(int device) noexcept;

// Stream ids of c10 are the driver's stream indices.
c10::Stream to_c10_stream(int device, int index);
driver::Stream* to_driver_stream(const c10::Stream& stream);

// Makes a stream current in this thread and returns the previous one of its device.
c10::Stream exchange_stream(const c10::Stream& stream);

// The next stream of a device's pool; a negative priority asks for the high one.
c10::Stream new_stream(int device, int priority);

// Waits for a stream, and raises when one of its tasks failed.
void synchronize_stream(driver::Stream* stream, const char* what);

} // namespace neuron_ref
