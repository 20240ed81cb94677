#pragma once

#include "driver/status.h"

#include <atomic>
#include <cstdint>

namespace neuron_ref::driver {

// A stream is an ordered queue of tasks. Its worker thread starts with the first task, so a stream that nothing was
// enqueued on costs nothing.
struct Stream;

// Runs on the stream's worker. It owns `context`, must not throw, and must touch no Python object: whoever waits for
// it may hold the interpreter's lock. Anything but ok makes the next synchronisation fail.
using Task = Status (*)(void* context);

// Streams of one device: 0 is the default stream, then the low and the high priority pool.
inline constexpr int kStreamsPerPool = 32;
inline constexpr int kStreamsPerDevice = 1 + 2 * kStreamsPerPool;

// The stream object lives for ever; null when there is no such device or stream.
Stream* stream_at(int device, int index) noexcept;
int device_of(const Stream* stream) noexcept;

// Appends a task and returns at once.
Status enqueue(Stream* stream, Task task, void* context) noexcept;

// Appends a delay.
Status enqueue_sleep(Stream* stream, double seconds) noexcept;

// ok when everything enqueued so far is done, not_ready otherwise.
Status query(Stream* stream) noexcept;

// Waits for everything enqueued so far. task_failed when a task failed since the last synchronisation.
Status synchronize(Stream* stream) noexcept;
Status synchronize_device(int device) noexcept;

// Tasks that are enqueued and not done, the running one included.
std::uint64_t pending(const Stream* stream) noexcept;

namespace detail {
// The counters that an idle check reads; the first member of Stream.
struct StreamProgress {
  std::atomic<std::uint64_t> enqueued{0};
  std::atomic<std::uint64_t> completed{0};
  std::atomic<bool> failed{false};
};
} // namespace detail

// Two loads: whether the stream has nothing left to do and nothing to report.
inline bool idle(const Stream* stream) noexcept {
  const auto* progress = reinterpret_cast<const detail::StreamProgress*>(stream);
  return progress->completed.load(std::memory_order_acquire) == progress->enqueued.load(std::memory_order_relaxed) &&
      !progress->failed.load(std::memory_order_relaxed);
}

} // namespace neuron_ref::driver
