#pragma once

#include <atomic>

namespace neuron_ref::driver {

namespace detail {
extern std::atomic<bool> forked;
} // namespace detail

// True in a process that was forked after the device was initialised. No driver call works there: the worker
// threads do not exist in the child, and the device memory is not mapped.
inline bool in_forked_child() noexcept {
  return detail::forked.load(std::memory_order_relaxed);
}

// Registers the fork handler; idempotent. The windows must be mapped before.
void install_fork_guard() noexcept;

} // namespace neuron_ref::driver
