#include "runtime/cpu_allocator.h"

#include "driver/memory.h"
#include "runtime/caching_allocator.h"

#include <c10/core/CPUAllocator.h>

namespace neuron_ref {
namespace detail {
thread_local int allocation_device = -1;
} // namespace detail

namespace {

c10::Allocator* heap = nullptr;
c10::DeleterFnPtr heap_deleter = nullptr;

// One deleter for both kinds, told apart by address: oneDNN allocates through raw_allocate, keeps only the address,
// and frees it later through raw_deleter, when the switch may stand elsewhere.
void delete_by_address(void* pointer) {
  if (driver::is_open_address(pointer)) {
    caching::free(caching::block_at(driver::device_address(pointer)));
  } else {
    heap_deleter(pointer);
  }
}

class SwitchedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const int device = detail::allocation_device;
    if (device < 0 || bytes == 0) {
      // The context must be the address itself, which raw_allocate asserts.
      void* pointer = heap->raw_allocate(bytes);
      return {pointer, pointer, &delete_by_address, c10::Device(c10::DeviceType::CPU)};
    }
    void* pointer = driver::open_address(caching::allocate(device, bytes)->pointer);
    return {pointer, pointer, &delete_by_address, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &delete_by_address;
  }

  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }
};

} // namespace

void install_cpu_allocator() {
  heap = c10::GetCPUAllocator();
  heap_deleter = heap->raw_deleter();
  TORCH_CHECK(heap_deleter != nullptr, "neuron: the CPU allocator of this torch has no raw deleter");
  constexpr std::uint8_t kPriority = 255; // above every other allocator, so that none replaces it afterwards
  c10::SetCPUAllocator(new SwitchedAllocator, kPriority); // never destroyed: storages point to it until the end
}

Block* block_of_cpu_data(const c10::DataPtr& data) noexcept {
  return data.get_deleter() == &delete_by_address && driver::is_open_address(data.get())
      ? caching::block_at(driver::device_address(data.get()))
      : nullptr;
}

} // namespace neuron_ref
