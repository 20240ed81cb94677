#include "driver/topology.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <strings.h>

namespace neuron_ref::driver {
namespace {

constexpr int kDefaultDevices = 2;
constexpr std::size_t kDefaultMemoryBytes = std::size_t{16} << 30;

int read_devices() {
  const char* text = std::getenv("NEURON_REF_DEVICES");
  if (text == nullptr || *text == '\0') {
    return kDefaultDevices;
  }
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 1 || value > kMaxDevices) {
    std::fprintf(
        stderr,
        "neuron: NEURON_REF_DEVICES=%s is no number from 1 to %d; %d devices are used\n",
        text,
        kMaxDevices,
        kDefaultDevices);
    return kDefaultDevices;
  }
  return static_cast<int>(value);
}

std::size_t read_memory() {
  const char* text = std::getenv("NEURON_REF_MEMORY");
  if (text == nullptr || *text == '\0') {
    return kDefaultMemoryBytes;
  }
  const std::size_t value = parse_bytes(text) / kChunkBytes * kChunkBytes;
  if (value == 0) {
    std::fprintf(
        stderr,
        "neuron: NEURON_REF_MEMORY=%s is no size of at least 2MiB (write 512MiB or 16GiB); 16GiB per device are used\n",
        text);
    return kDefaultMemoryBytes;
  }
  return value;
}

} // namespace

std::size_t parse_bytes(const char* text) noexcept {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  if (end == text || !(number > 0)) {
    return 0;
  }
  while (*end == ' ') {
    ++end;
  }
  struct Unit {
    const char* name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {
      {"", 1.0}, {"B", 1.0}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
      {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"K", 0x1p10}, {"M", 0x1p20}, {"G", 0x1p30}, {"T", 0x1p40},
  };
  for (const Unit& unit : kUnits) {
    if (strcasecmp(end, unit.name) == 0) {
      const double bytes = number * unit.bytes;
      return bytes < 0x1p46 ? static_cast<std::size_t>(bytes) : 0;
    }
  }
  return 0;
}

const Topology& topology() {
  static const Topology instance{read_devices(), read_memory()};
  return instance;
}

} // namespace neuron_ref::driver
