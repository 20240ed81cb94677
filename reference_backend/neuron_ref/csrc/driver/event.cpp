#include "driver/event.h"

#include "driver/fork_guard.h"
#include "driver/topology.h"
#include "faults.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>

namespace neuron_ref::driver {
namespace {

using Clock = std::chrono::steady_clock;

// Shared by the handle and by the tasks in the queues: an event may be destroyed while streams still wait for it.
struct State {
  std::mutex mutex;
  std::condition_variable reached;
  std::uint64_t recorded = 0; // version of the newest mark
  std::uint64_t completed = 0; // version of the newest mark that was reached
  Clock::time_point time;
};

struct Mark {
  std::shared_ptr<State> state;
  std::uint64_t version;
};

void reach(State& state, std::uint64_t version) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (version > state.completed) {
    state.completed = version;
    state.time = Clock::now();
  }
  state.reached.notify_all();
}

Status record_task(void* context) {
  const std::unique_ptr<Mark> mark(static_cast<Mark*>(context));
  reach(*mark->state, mark->version);
  return Status::ok;
}

Status wait_task(void* context) {
  const std::unique_ptr<Mark> mark(static_cast<Mark*>(context));
  std::unique_lock<std::mutex> lock(mark->state->mutex);
  mark->state->reached.wait(lock, [&] { return mark->state->completed >= mark->version; });
  return Status::ok;
}

Status enqueue_mark(Stream* stream, Task task, const std::shared_ptr<State>& state, std::uint64_t version) {
  auto mark = std::make_unique<Mark>(Mark{state, version});
  const Status status = enqueue(stream, task, mark.get());
  if (status == Status::ok) {
    static_cast<void>(mark.release());
  }
  return status;
}

} // namespace

struct Event {
  int device;
  bool timing;
  std::shared_ptr<State> state = std::make_shared<State>();
};

Status event_create(int device, bool timing, Event** event) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (device < 0 || device >= topology().devices) {
    return Status::invalid_device;
  }
  *event = new Event{device, timing};
  return Status::ok;
}

void event_destroy(Event* event) noexcept {
  delete event;
}

int event_device(const Event* event) noexcept {
  return event->device;
}

Status event_record(Event* event, Stream* stream) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (event->device != device_of(stream)) {
    return Status::invalid_device;
  }
  State& state = *event->state;
  std::uint64_t version = 0;
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    version = ++state.recorded;
  }
  if (idle(stream)) {
    reach(state, version);
    return Status::ok;
  }
  return enqueue_mark(stream, record_task, event->state, version);
}

Status event_wait(Event* event, Stream* stream) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (fault(Fault::event_does_not_wait)) {
    return Status::ok;
  }
  State& state = *event->state;
  std::uint64_t version = 0;
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.completed >= state.recorded) {
      return Status::ok;
    }
    version = state.recorded;
  }
  return enqueue_mark(stream, wait_task, event->state, version);
}

Status event_query(Event* event) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (fault(Fault::event_query_always_true)) {
    return Status::ok;
  }
  const std::lock_guard<std::mutex> lock(event->state->mutex);
  return event->state->completed >= event->state->recorded ? Status::ok : Status::not_ready;
}

Status event_synchronize(Event* event) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (fault(Fault::event_sync_returns_early)) {
    return Status::ok;
  }
  State& state = *event->state;
  std::unique_lock<std::mutex> lock(state.mutex);
  const std::uint64_t version = state.recorded;
  state.reached.wait(lock, [&] { return state.completed >= version; });
  return Status::ok;
}

Status event_elapsed(Event* start, Event* end, double* milliseconds) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (!start->timing || !end->timing) {
    return Status::event_without_timing;
  }
  const auto read = [](State& state, Clock::time_point& time) {
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.recorded == 0) {
      return Status::event_not_recorded;
    }
    time = state.time;
    return state.completed >= state.recorded ? Status::ok : Status::not_ready;
  };
  Clock::time_point from;
  Clock::time_point to;
  for (const Status status : {read(*start->state, from), read(*end->state, to)}) {
    if (status != Status::ok) {
      return status;
    }
  }
  *milliseconds =
      fault(Fault::elapsed_time_zero) ? 0.0 : std::chrono::duration<double, std::milli>(to - from).count();
  return Status::ok;
}

} // namespace neuron_ref::driver
