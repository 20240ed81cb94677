#include "driver/status.h"

namespace neuron_ref::driver {

const char* describe(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return "success";
    case Status::invalid_device:
      return "no device has this index";
    case Status::invalid_argument:
      return "an argument is out of its range";
    case Status::invalid_pointer:
      return "the address is not the start of an allocation of this device";
    case Status::out_of_memory:
      return "out of device memory";
    case Status::host_out_of_memory:
      return "out of page-locked host memory";
    case Status::mapping_failed:
      return "the operating system refused to map the device memory";
    case Status::not_ready:
      return "the work is not finished";
    case Status::event_not_recorded:
      return "the event has not been recorded";
    case Status::event_without_timing:
      return "the event was created without timing";
    case Status::task_failed:
      return "a task that ran earlier on this stream failed";
    case Status::forked_process:
      return "this process was forked after the device was initialised";
  }
  return "unknown status";
}

} // namespace neuron_ref::driver
