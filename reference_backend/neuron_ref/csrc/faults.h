#pragma once

// Faults on purpose: each switch makes the device wrong in one way, so that the check which ought to notice can be
// proven to notice. One line a fault: FAULT(name, what goes wrong).
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#define NEURON_REF_FAULTS(FAULT)                                                                       \
  /* memory */                                                                                         \
  FAULT(stats_not_counted, "allocations do not appear in the memory statistics")                       \
  FAULT(peak_not_reset, "reset_peak_memory_stats leaves the peaks as they are")                        \
  FAULT(accumulated_not_reset, "reset_accumulated_memory_stats leaves the totals as they are")         \
  FAULT(empty_cache_keeps_reserved, "empty_cache gives no segment back")                               \
  FAULT(memory_info_never_changes, "mem_get_info reports all memory as free")                          \
  FAULT(record_stream_ignored, "record_stream does not defer the reuse of a block")                    \
  FAULT(memory_leaks, "freed blocks are never used again")                                             \
  FAULT(resize_loses_data, "growing a storage drops what it held")                                     \
  /* copies */                                                                                         \
  FAULT(copy_drops_last_element, "copies leave the last element unwritten")                            \
  FAULT(copy_ignores_storage_offset, "a copy from a view starts at the beginning of the storage")      \
  FAULT(copy_rounds_to_bfloat16, "float32 copies to the host lose the low half of the mantissa")       \
  FAULT(d2d_copies_wrong_device, "a copy between devices reads the destination's own memory")          \
  FAULT(nonblocking_runs_before_stream, "a non-blocking copy overtakes the work enqueued before it")   \
  FAULT(nonblocking_blocks, "a non-blocking copy waits until it is done")                              \
  FAULT(pin_does_nothing, "pinned memory is ordinary memory")                                          \
  /* streams and events */                                                                             \
  FAULT(stream_sync_returns_early, "synchronising a stream does not wait")                             \
  FAULT(device_sync_returns_early, "synchronising a device does not wait")                             \
  FAULT(stream_query_always_true, "a busy stream reports that it is done")                             \
  FAULT(new_stream_is_default, "a new stream is the default stream")                                   \
  FAULT(event_does_not_wait, "a stream passes an event that is not reached yet")                       \
  FAULT(event_query_always_true, "an event that is not reached yet reports that it is")                \
  FAULT(event_sync_returns_early, "synchronising an event does not wait")                              \
  FAULT(elapsed_time_zero, "the time between two events is always zero")                               \
  /* devices */                                                                                        \
  FAULT(set_device_ignored, "set_device changes nothing")                                              \
  FAULT(current_device_wrong, "the current device is reported off by one")                             \
  FAULT(guard_does_not_restore, "leaving a device guard keeps the inner device")                       \
  FAULT(same_device_check_missing, "tensors of different devices are mixed without an error")          \
  FAULT(fork_not_poisoned, "a forked child may use the device")                                        \
  /* random numbers */                                                                                 \
  FAULT(rng_does_not_advance, "every random call draws the same numbers")                              \
  FAULT(rng_seed_ignored, "manual_seed keeps the old seed")                                            \
  FAULT(rng_state_truncated, "get_state forgets the offset")                                           \
  FAULT(rng_state_not_restored, "set_state changes nothing")                                           \
  FAULT(rng_generator_ignored, "a generator given by the caller is replaced by the default one")       \
  /* results */                                                                                        \
  FAULT(wrong_stride_output, "fresh two-dimensional outputs have the strides of their transpose")      \
  FAULT(add_off_by_ulp, "the first element of a float32 addition is off by one unit in the last place") \
  FAULT(sum_wrong_for_int64, "the sum of int64 tensors is one too large")                              \
  FAULT(inplace_no_version_bump, "operators on the device do not raise the version of what they write") \
  FAULT(view_copies, "a view is a copy of its base")

namespace neuron_ref {

enum class Fault : std::uint32_t {
#define NEURON_REF_FAULT_ENUM(name, text) name,
  NEURON_REF_FAULTS(NEURON_REF_FAULT_ENUM)
#undef NEURON_REF_FAULT_ENUM
      count
};

namespace detail {
inline constexpr std::size_t kFaultWords = (static_cast<std::size_t>(Fault::count) + 63) / 64;
extern std::atomic<std::uint64_t> fault_bits[kFaultWords];
} // namespace detail

// Whether a fault is switched on: one relaxed load.
inline bool fault(Fault which) noexcept {
  const auto index = static_cast<std::uint32_t>(which);
  return (detail::fault_bits[index / 64].load(std::memory_order_relaxed) >> (index % 64)) & 1;
}

// Whether any fault at all is on, for paths that would test several.
inline bool any_fault() noexcept {
  std::uint64_t bits = 0;
  for (const auto& word : detail::fault_bits) {
    bits |= word.load(std::memory_order_relaxed);
  }
  return bits != 0;
}

std::vector<std::string> fault_names();

// What a fault does, or an empty string when there is none of this name.
std::string fault_description(const std::string& name);

// False when there is no fault of this name.
bool set_fault(const std::string& name, bool enabled);

} // namespace neuron_ref
