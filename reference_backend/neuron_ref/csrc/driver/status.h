#pragma once

namespace neuron_ref::driver {

// One code per kind of failure, so that the runtime can say what happened without parsing text.
enum class Status : int {
  ok = 0,
  invalid_device,
  invalid_argument,
  invalid_pointer,
  out_of_memory,
  host_out_of_memory,
  mapping_failed,
  not_ready,
  event_not_recorded,
  event_without_timing,
  task_failed,
  forked_process,
};

// What happened, in words for a user; never null.
const char* describe(Status status) noexcept;

} // namespace neuron_ref::driver
