#include "runtime/initialize.h"

#include "driver/access_report.h"
#include "driver/fork_guard.h"
#include "driver/memory.h"
#include "ops/executor.h"
#include "runtime/caching_allocator.h"
#include "runtime/check.h"
#include "runtime/cpu_allocator.h"
#include "runtime/device.h"
#include "runtime/device_allocator.h"
#include "runtime/guard.h"
#include "runtime/hooks.h"
#include "runtime/host_allocator.h"

namespace neuron_ref {
namespace {

bool describe_block(const void* address, driver::BlockDescription* description) {
  const Block* block = caching::block_around(address);
  if (block == nullptr) {
    return false;
  }
  description->start = reinterpret_cast<std::uintptr_t>(block->pointer);
  description->bytes = block->allocated ? block->requested_bytes : block->bytes;
  description->allocated = block->allocated;
  return true;
}

bool initialize_once() {
  check(driver::initialize_memory(), "mapping the device memory");
  driver::install_fork_guard();
  caching::initialize();
  driver::install_access_report(describe_block);
  c10::SetAllocator(kNeuron, device_allocator());
  install_cpu_allocator();
  install_host_allocator();
  install_guard();
  install_hooks();
  register_executor();
  return true;
}

} // namespace

void initialize() {
  check_not_forked();
  static const bool initialized = initialize_once();
  static_cast<void>(initialized);
}

} // namespace neuron_ref
