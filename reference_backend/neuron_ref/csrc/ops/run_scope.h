#pragma once

#include "runtime/cpu_allocator.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace neuron_ref {

// What surrounds a CPU kernel that works on device memory: no autograd and no autocast below it, and allocations in
// device memory (or on the heap, for -1).
class RunScope {
 public:
  explicit RunScope(int allocation_device)
      : local_(&c10::impl::raw_local_dispatch_key_set), saved_(*local_), allocation_(allocation_device) {
    constexpr c10::DispatchKeySet kBelow =
        c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;
    local_->set_excluded(saved_.excluded() | kBelow);
  }
  ~RunScope() {
    *local_ = saved_;
  }
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

 private:
  c10::impl::PODLocalDispatchKeySet* local_;
  c10::impl::PODLocalDispatchKeySet saved_;
  AllocationDevice allocation_;
};

} // namespace neuron_ref
