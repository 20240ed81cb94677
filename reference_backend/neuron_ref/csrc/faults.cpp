#include "faults.h"

namespace neuron_ref {
namespace detail {
std::atomic<std::uint64_t> fault_bits[kFaultWords] = {};
} // namespace detail

namespace {

struct Entry {
  const char* name;
  const char* text;
};

constexpr Entry kEntries[] = {
#define NEURON_REF_FAULT_ENTRY(name, text) {#name, text},
    NEURON_REF_FAULTS(NEURON_REF_FAULT_ENTRY)
#undef NEURON_REF_FAULT_ENTRY
};

} // namespace

std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) {
    names.emplace_back(entry.name);
  }
  return names;
}

std::string fault_description(const std::string& name) {
  for (const Entry& entry : kEntries) {
    if (name == entry.name) {
      return entry.text;
    }
  }
  return {};
}

bool set_fault(const std::string& name, bool enabled) {
  for (std::uint32_t index = 0; index < static_cast<std::uint32_t>(Fault::count); ++index) {
    if (name == kEntries[index].name) {
      const std::uint64_t bit = std::uint64_t{1} << (index % 64);
      if (enabled) {
        detail::fault_bits[index / 64].fetch_or(bit);
      } else {
        detail::fault_bits[index / 64].fetch_and(~bit);
      }
      return true;
    }
  }
  return false;
}

} // namespace neuron_ref
