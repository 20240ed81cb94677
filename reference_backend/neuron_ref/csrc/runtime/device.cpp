#include "runtime/device.h"

#include "driver/fork_guard.h"
#include "driver/topology.h"
#include "faults.h"
#include "runtime/check.h"

namespace neuron_ref {
namespace {

thread_local int current = 0;

void check_index(int index) {
  const int count = driver::topology().devices;
  TORCH_CHECK(
      index >= 0 && index < count,
      "invalid neuron device index ",
      index,
      "; ",
      count,
      " devices exist: 0 to ",
      count - 1,
      " (NEURON_REF_DEVICES sets their number)");
}

} // namespace

int device_count() noexcept {
  return driver::topology().devices;
}

int current_device() {
  check_not_forked();
  return fault(Fault::current_device_wrong) ? (current + 1) % device_count() : current;
}

void set_device(int index) {
  check_not_forked();
  check_index(index);
  if (!fault(Fault::set_device_ignored)) {
    current = index;
  }
}

int exchange_device(int index) {
  if (index < 0) {
    return -1;
  }
  check_not_forked();
  check_index(index);
  const int previous = current;
  current = index;
  return previous;
}

void restore_device(int index) noexcept {
  if (index >= 0 && index < device_count() && !fault(Fault::guard_does_not_restore)) {
    current = index;
  }
}

int device_or_current(int index) {
  if (index < 0) {
    return current_device();
  }
  check_index(index);
  return index;
}

} // namespace neuron_ref
