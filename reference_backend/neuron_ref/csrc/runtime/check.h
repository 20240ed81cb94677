#pragma once

#include "driver/status.h"

#include <c10/util/Exception.h>

namespace neuron_ref {

// Raises the Python exception that belongs to a driver status; `what` says which call failed.
[[noreturn]] void raise_status(driver::Status status, const char* what);

inline void check(driver::Status status, const char* what) {
  if (C10_UNLIKELY(status != driver::Status::ok)) {
    raise_status(status, what);
  }
}

// Raises in a process that was forked after the device was initialised.
void check_not_forked();

} // namespace neuron_ref
