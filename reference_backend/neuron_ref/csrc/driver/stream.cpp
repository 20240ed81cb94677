#include "driver/stream.h"

#include "driver/fork_guard.h"
#include "driver/topology.h"
#include "faults.h"

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <deque>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>

namespace neuron_ref::driver {

struct Stream {
  detail::StreamProgress progress; // first: idle() reads it through the stream's address
  int device = 0;
  int index = 0;
  bool started = false;
  std::mutex mutex;
  std::condition_variable work_added;
  std::condition_variable work_done;
  struct Entry {
    Task task;
    void* context;
  };
  std::deque<Entry> queue;
};

namespace {

Stream* streams() {
  static Stream* const instance = [] {
    auto* all = new Stream[kMaxDevices * kStreamsPerDevice]; // never destroyed: workers outlive static objects
    for (int device = 0; device < kMaxDevices; ++device) {
      for (int index = 0; index < kStreamsPerDevice; ++index) {
        Stream& stream = all[device * kStreamsPerDevice + index];
        stream.device = device;
        stream.index = index;
      }
    }
    return all;
  }();
  return instance;
}

void work(Stream* stream) {
  char name[16];
  std::snprintf(name, sizeof(name), "neuron%d/%d", stream->device, stream->index);
  pthread_setname_np(pthread_self(), name);
  std::unique_lock<std::mutex> lock(stream->mutex);
  for (;;) {
    stream->work_added.wait(lock, [stream] { return !stream->queue.empty(); });
    const Stream::Entry entry = stream->queue.front();
    stream->queue.pop_front();
    lock.unlock();
    const Status status = entry.task(entry.context);
    lock.lock();
    if (status != Status::ok) {
      stream->progress.failed.store(true, std::memory_order_relaxed);
    }
    stream->progress.completed.fetch_add(1, std::memory_order_release);
    stream->work_done.notify_all();
  }
}

// Python's signals belong to the main thread; the synchronous ones must stay deliverable here.
void start_worker(Stream* stream) {
  sigset_t blocked;
  sigset_t previous;
  sigfillset(&blocked);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) {
    sigdelset(&blocked, signal);
  }
  pthread_sigmask(SIG_SETMASK, &blocked, &previous);
  std::thread(work, stream).detach();
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

Status sleep_task(void* context) {
  const std::uint64_t nanoseconds = reinterpret_cast<std::uintptr_t>(context);
  timespec remaining{
      static_cast<time_t>(nanoseconds / 1000000000), static_cast<long>(nanoseconds % 1000000000)};
  while (nanosleep(&remaining, &remaining) != 0) {
  }
  return Status::ok;
}

} // namespace

Stream* stream_at(int device, int index) noexcept {
  if (device < 0 || device >= topology().devices || index < 0 || index >= kStreamsPerDevice) {
    return nullptr;
  }
  return &streams()[device * kStreamsPerDevice + index];
}

int device_of(const Stream* stream) noexcept {
  return stream->device;
}

Status enqueue(Stream* stream, Task task, void* context) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  const std::lock_guard<std::mutex> lock(stream->mutex);
  stream->queue.push_back({task, context});
  if (!stream->started) {
    try {
      start_worker(stream);
    } catch (const std::system_error&) {
      stream->queue.pop_back();
      return Status::host_out_of_memory;
    }
    stream->started = true;
  }
  stream->progress.enqueued.fetch_add(1, std::memory_order_release);
  stream->work_added.notify_one();
  return Status::ok;
}

Status enqueue_sleep(Stream* stream, double seconds) noexcept {
  if (!(seconds >= 0) || seconds > 86400) {
    return Status::invalid_argument;
  }
  return enqueue(stream, sleep_task, reinterpret_cast<void*>(static_cast<std::uintptr_t>(seconds * 1e9)));
}

Status query(Stream* stream) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (fault(Fault::stream_query_always_true)) {
    return Status::ok;
  }
  return pending(stream) == 0 ? Status::ok : Status::not_ready;
}

Status synchronize(Stream* stream) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (fault(Fault::stream_sync_returns_early) || idle(stream)) {
    return Status::ok;
  }
  std::unique_lock<std::mutex> lock(stream->mutex);
  const std::uint64_t target = stream->progress.enqueued.load(std::memory_order_relaxed);
  stream->work_done.wait(
      lock, [&] { return stream->progress.completed.load(std::memory_order_relaxed) >= target; });
  return stream->progress.failed.exchange(false) ? Status::task_failed : Status::ok;
}

Status synchronize_device(int device) noexcept {
  if (in_forked_child()) {
    return Status::forked_process;
  }
  if (device < 0 || device >= topology().devices) {
    return Status::invalid_device;
  }
  if (fault(Fault::device_sync_returns_early)) {
    return Status::ok;
  }
  Status result = Status::ok;
  for (int index = 0; index < kStreamsPerDevice; ++index) {
    const Status status = synchronize(stream_at(device, index));
    if (status != Status::ok) {
      result = status;
    }
  }
  return result;
}

std::uint64_t pending(const Stream* stream) noexcept {
  const std::uint64_t completed = stream->progress.completed.load(std::memory_order_acquire);
  return stream->progress.enqueued.load(std::memory_order_acquire) - completed;
}

} // namespace neuron_ref::driver
