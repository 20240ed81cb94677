#include "runtime/check.h"

#include "driver/fork_guard.h"
#include "driver/topology.h"

namespace neuron_ref {

void raise_status(driver::Status status, const char* what) {
  using driver::Status;
  switch (status) {
    case Status::forked_process:
      TORCH_CHECK(
          false,
          "Cannot re-initialize neuron in forked subprocess. To use neuron with multiprocessing, you must use the "
          "'spawn' start method (",
          what,
          ")");
    case Status::invalid_device:
      TORCH_CHECK(
          false,
          what,
          ": invalid device index; ",
          driver::topology().devices,
          " neuron devices exist (NEURON_REF_DEVICES sets their number)");
    case Status::out_of_memory:
    case Status::host_out_of_memory:
      TORCH_CHECK_WITH(OutOfMemoryError, false, what, ": ", driver::describe(status));
    default:
      TORCH_CHECK(false, what, ": ", driver::describe(status));
  }
}

void check_not_forked() {
  if (C10_UNLIKELY(driver::in_forked_child())) {
    raise_status(driver::Status::forked_process, "device use");
  }
}

} // namespace neuron_ref
