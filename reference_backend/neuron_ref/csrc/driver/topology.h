#pragma once

#include <cstddef>
#include <cstdint>

namespace neuron_ref::driver {

inline constexpr int kMaxDevices = 16;
// Device memory is handed out in chunks of this size.
inline constexpr std::size_t kChunkBytes = std::size_t{2} << 20;

struct Topology {
  int devices;
  std::size_t memory_bytes; // of each device, a multiple of kChunkBytes
};

// Read once from NEURON_REF_DEVICES (1 to 16, default 2) and NEURON_REF_MEMORY (such as "512MiB", default "16GiB").
// A value that does not parse is reported on stderr and replaced by the default.
const Topology& topology();

// Parses "4096", "64KiB", "512MiB", "16GiB", "1.5GB"; 0 when the text is no size.
std::size_t parse_bytes(const char* text) noexcept;

} // namespace neuron_ref::driver
