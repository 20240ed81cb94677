// The names of _C.pyi.
#include "driver/fork_guard.h"
#include "driver/stream.h"
#include "driver/topology.h"
#include "faults.h"
#include "ops/executor.h"
#include "runtime/caching_allocator.h"
#include "runtime/check.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/host_allocator.h"
#include "runtime/initialize.h"
#include "runtime/stream.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>

namespace py = pybind11;

namespace neuron_ref {
namespace {

struct DeviceProperties {
  std::string name;
  std::size_t total_memory;
  int index;
  std::string model;
};

driver::Stream* stream_of(int device, int stream_id) {
  return to_driver_stream(to_c10_stream(device_or_current(device), stream_id));
}

py::object default_generator_object(int index) {
  const at::Generator& generator = default_generator(index);
  return py::reinterpret_steal<py::object>(THPGenerator_Wrap(generator));
}

// Through the operator of this name: the headers that turn a PyObject into a tensor double this file's compile time.
py::object alias_host(const py::object& tensor) {
  return py::module_::import("torch").attr("ops").attr("neuron_ref").attr("alias_host")(tensor);
}

void bind_device(py::module_& m) {
  using release_lock = py::call_guard<py::gil_scoped_release>;
  py::class_<DeviceProperties>(m, "DeviceProperties")
      .def_readonly("name", &DeviceProperties::name)
      .def_readonly("total_memory", &DeviceProperties::total_memory)
      .def_readonly("index", &DeviceProperties::index)
      .def_readonly("model", &DeviceProperties::model)
      .def("__repr__", [](const DeviceProperties& self) {
        return "DeviceProperties(name='" + self.name + "', total_memory=" + std::to_string(self.total_memory) +
            ", index=" + std::to_string(self.index) + ", model='" + self.model + "')";
      });
  m.def("initialize", &initialize);
  m.def("device_count", &device_count);
  m.def("current_device", &current_device);
  m.def("set_device", &set_device, py::arg("index"));
  m.def("exchange_device", &exchange_device, py::arg("index"));
  m.def(
      "synchronize",
      [](int index) { check(driver::synchronize_device(device_or_current(index)), "synchronizing a device"); },
      py::arg("index"),
      release_lock());
  m.def(
      "get_device_properties",
      [](int index) {
        const int device = device_or_current(index);
        return DeviceProperties{"trn2", driver::topology().memory_bytes, device, "full"};
      },
      py::arg("index"));
  m.def(
      "mem_get_info",
      [](int index) { return caching::memory_info(device_or_current(index)); },
      py::arg("index"));
  m.def("is_in_bad_fork", [] { return driver::in_forked_child(); });
  m.def("default_generator", &default_generator_object, py::arg("index"));
}

void bind_observation(py::module_& m) {
  using release_lock = py::call_guard<py::gil_scoped_release>;
  m.def("empty_host_cache", &empty_host_cache, release_lock());
  m.def("host_memory_stats", [] {
    py::dict result;
    for (const auto& [name, value] : host_memory_stats()) {
      result[py::str(name)] = value;
    }
    return result;
  });
  m.def(
      "sleep",
      [](double seconds, int device, int stream_id) {
        check(driver::enqueue_sleep(stream_of(device, stream_id), seconds), "sleep");
      },
      py::arg("seconds"),
      py::arg("device"),
      py::arg("stream_id"));
  m.def(
      "enqueued_tasks",
      [](int device, int stream_id) { return driver::pending(stream_of(device, stream_id)); },
      py::arg("device"),
      py::arg("stream_id"));
  m.def("executed_ops", &executed_ops, py::arg("reset"));
  m.def("count_ops", &count_ops, py::arg("enabled"));
  m.def("fault_names", &fault_names);
  m.def("fault_description", &fault_description, py::arg("name"));
  m.def(
      "set_fault",
      [](const std::string& name, bool enabled) {
        if (!set_fault(name, enabled)) {
          throw py::value_error("there is no fault named '" + name + "'; neuron_ref._C.fault_names() lists them");
        }
      },
      py::arg("name"),
      py::arg("enabled"));
  m.def("alias_host", &alias_host, py::arg("tensor"));
}

} // namespace
} // namespace neuron_ref

PYBIND11_MODULE(_C, m) {
  neuron_ref::bind_device(m);
  neuron_ref::bind_observation(m);
}
