#include "driver/fork_guard.h"

#include "driver/memory.h"
#include "faults.h"

#include <pthread.h>
#include <sys/mman.h>

namespace neuron_ref::driver {
namespace detail {
std::atomic<bool> forked{false};
} // namespace detail

namespace {

// With the fault on, the child shares the pages like any other shared mapping.
void prepare() {
  if (fault(Fault::fork_not_poisoned)) {
    const Windows& windows = driver::windows();
    madvise(reinterpret_cast<void*>(windows.sealed), 2 * windows.window_bytes, MADV_DOFORK);
  }
}

void poison_child() {
  if (fault(Fault::fork_not_poisoned)) {
    return;
  }
  detail::forked.store(true, std::memory_order_relaxed);
  // The windows are not mapped here (MADV_DONTFORK). Take their addresses again, so that nothing else of the
  // child is ever placed where its inherited tensors point to.
  const Windows& windows = driver::windows();
  mmap(
      reinterpret_cast<void*>(windows.sealed),
      2 * windows.window_bytes,
      PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
      -1,
      0);
}

} // namespace

void install_fork_guard() noexcept {
  static const int registered = pthread_atfork(prepare, nullptr, poison_child);
  static_cast<void>(registered);
}

} // namespace neuron_ref::driver
