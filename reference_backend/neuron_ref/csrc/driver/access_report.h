#pragma once

#include <cstddef>
#include <cstdint>

namespace neuron_ref::driver {

// What the allocator knows about an address. Filled in a signal handler: no lock, no allocation.
struct BlockDescription {
  std::uintptr_t start = 0;
  std::size_t bytes = 0;
  bool allocated = false;
};

// Finds the block around a device address; false when there is none. Must be async-signal-safe.
using DescribeBlock = bool (*)(const void* address, BlockDescription* description);

// Installs a SIGSEGV handler that explains a host access to device memory and then hands the signal to whichever
// handler was there before (faulthandler, say). A handler that is installed later and chains to this one works too.
void install_access_report(DescribeBlock describe_block) noexcept;

} // namespace neuron_ref::driver
