#pragma once

#include "driver/status.h"
#include "driver/stream.h"

namespace neuron_ref::driver {

// A mark in a stream. Recording it again moves the mark; waits made before keep waiting for the earlier one.
struct Event;

Status event_create(int device, bool timing, Event** event) noexcept;
void event_destroy(Event* event) noexcept;
int event_device(const Event* event) noexcept;

// Marks the end of what is enqueued on the stream now.
Status event_record(Event* event, Stream* stream) noexcept;

// What is enqueued on the stream from now on runs after the event's current mark is reached.
Status event_wait(Event* event, Stream* stream) noexcept;

// ok when the mark is reached or the event was never recorded, not_ready otherwise.
Status event_query(Event* event) noexcept;

// Blocks the caller until the mark is reached.
Status event_synchronize(Event* event) noexcept;

// Milliseconds between two reached marks.
Status event_elapsed(Event* start, Event* end, double* milliseconds) noexcept;

} // namespace neuron_ref::driver
