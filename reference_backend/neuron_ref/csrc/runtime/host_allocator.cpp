#include "runtime/host_allocator.h"

#include "driver/event.h"
#include "driver/fork_guard.h"
#include "driver/host_memory.h"
#include "faults.h"
#include "runtime/check.h"
#include "runtime/device.h"
#include "runtime/stream.h"

#include <ATen/core/CachingHostAllocator.h>

#include <memory>

namespace neuron_ref {
namespace {

struct DestroyEvent {
  void operator()(driver::Event* event) const noexcept {
    driver::event_destroy(event);
  }
};
using Event = std::unique_ptr<driver::Event, DestroyEvent>;

// The caching is PyTorch's own; this says where memory comes from and when a stream has passed.
struct PinnedMemory final : at::CachingHostAllocatorImpl<c10::Stream, Event> {
  using Base = at::CachingHostAllocatorImpl<c10::Stream, Event>;

  std::pair<void*, void*> allocate(std::size_t bytes) override {
    check_not_forked();
    return Base::allocate(bytes);
  }

  void free(void* context) override {
    if (!driver::in_forked_child()) {
      Base::free(context);
    }
  }

 private:
  void allocate_host_memory(std::size_t bytes, void** pointer) override {
    check(driver::host_allocate(bytes, pointer), "allocating pinned memory");
  }

  void free_block(at::HostBlock<c10::Stream>* block) override {
    driver::host_release(block->ptr_);
  }

  void record_stream(std::optional<std::vector<Event>>& events, c10::Stream stream) override {
    driver::Event* event = nullptr;
    check(driver::event_create(stream.device_index(), false, &event), "recording pinned memory");
    Event owned(event);
    check(driver::event_record(event, to_driver_stream(stream)), "recording pinned memory");
    events->push_back(std::move(owned));
  }

  bool query_event(Event& event) override {
    return driver::event_query(event.get()) == driver::Status::ok;
  }

  c10::Stream get_current_stream() const override {
    const int device = current_device();
    return to_c10_stream(device, current_stream_index(device));
  }

  bool stream_is_capturing(c10::Stream) const override {
    return false;
  }
};

void free_pinned(void* context);

using Interface = at::CachingHostAllocatorInterface<PinnedMemory, free_pinned>;

Interface& interface() {
  static auto* const instance = new Interface; // never destroyed: tensors may outlive static objects
  return *instance;
}

void free_pinned(void* context) {
  interface().free(context);
}

template <class Stat>
void add_stat(std::vector<std::pair<std::string, std::int64_t>>& all, const std::string& name, const Stat& stat) {
  all.emplace_back(name + ".current", stat.current);
  all.emplace_back(name + ".peak", stat.peak);
  all.emplace_back(name + ".allocated", stat.allocated);
  all.emplace_back(name + ".freed", stat.freed);
}

} // namespace

void install_host_allocator() {
  at::setHostAllocator(kNeuron, &interface());
}

c10::Allocator* pinned_allocator() {
  return &interface();
}

bool is_pinned(const void* pointer) noexcept {
  return !fault(Fault::pin_does_nothing) && driver::is_host_allocation(pointer);
}

bool record_pinned_use(const c10::DataPtr& data, const c10::Stream& stream) {
  return interface().record_event(data.get(), data.get_context(), stream);
}

void empty_host_cache() {
  check_not_forked();
  interface().empty_cache();
}

std::vector<std::pair<std::string, std::int64_t>> host_memory_stats() {
  check_not_forked();
  const at::HostStats stats = interface().get_stats();
  std::vector<std::pair<std::string, std::int64_t>> all;
  add_stat(all, "active_requests", stats.active_requests);
  add_stat(all, "active_bytes", stats.active_bytes);
  add_stat(all, "allocations", stats.allocations);
  add_stat(all, "allocated_bytes", stats.allocated_bytes);
  all.emplace_back("num_host_alloc", stats.num_host_alloc);
  all.emplace_back("num_host_free", stats.num_host_free);
  return all;
}

} // namespace neuron_ref
