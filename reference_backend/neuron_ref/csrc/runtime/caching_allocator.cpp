#include "runtime/caching_allocator.h"

#include "driver/event.h"
#include "driver/fork_guard.h"
#include "driver/memory.h"
#include "driver/topology.h"
#include "faults.h"
#include "runtime/check.h"
#include "runtime/out_of_memory.h"
#include "runtime/stream.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <sys/mman.h>

namespace neuron_ref::caching {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

// The same sizes as PyTorch's CUDA allocator, so that figures can be compared.
constexpr std::size_t kMinBlockBytes = 512;
constexpr std::size_t kSmallBytes = std::size_t{1} << 20; // blocks up to here come from small segments
constexpr std::size_t kSmallSegmentBytes = std::size_t{2} << 20;
constexpr std::size_t kMinLargeBytes = std::size_t{10} << 20; // larger requests get a segment of their own size
constexpr std::size_t kLargeSegmentBytes = std::size_t{20} << 20;
// Blocks up to here are kept in bins of one size each, which costs no search and no merging.
constexpr std::size_t kBinBytes = std::size_t{64} << 10;
constexpr std::size_t kBins = kBinBytes / kMinBlockBytes + 1;
// A freed block of this size gives its pages back to the system; punching holes in smaller ones costs more than it
// saves (page faults make an addition of 1M elements three times slower at 4 MiB).
constexpr std::size_t kDiscardBytes = std::size_t{256} << 20;

struct SmallestFit {
  bool operator()(const Block* left, const Block* right) const {
    if (left->stream != right->stream) {
      return left->stream < right->stream;
    }
    if (left->bytes != right->bytes) {
      return left->bytes < right->bytes;
    }
    return left->pointer < right->pointer;
  }
};

using Pool = std::set<Block*, SmallestFit>;
using Bins = std::array<Block*, kBins>;

struct Device {
  std::mutex mutex;
  Pool small;
  Pool large;
  std::array<std::unique_ptr<Bins>, driver::kStreamsPerDevice> bins;
  std::deque<std::pair<driver::Event*, Block*>> events;
  c10::CachingDeviceAllocator::DeviceStats stats;
};

Device* devices() {
  static Device* const instance = new Device[driver::kMaxDevices]; // never destroyed: tensors may outlive statics
  return instance;
}

// One entry for each 512 bytes of device memory, set where a block starts; untouched parts take no memory.
Block** table = nullptr;

std::size_t slot_of(const void* pointer) {
  return (reinterpret_cast<std::uintptr_t>(pointer) - driver::windows().sealed) / kMinBlockBytes;
}

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void count(StatArray& stat, const Block& block, std::int64_t amount) {
  for (const auto type : {StatType::AGGREGATE, block.small ? StatType::SMALL_POOL : StatType::LARGE_POOL}) {
    Stat& entry = stat[static_cast<std::size_t>(type)];
    if (amount >= 0) {
      entry.increase(static_cast<std::size_t>(amount));
    } else {
      entry.decrease(static_cast<std::size_t>(-amount));
    }
  }
}

// Keeps the statistic of free blocks that cannot be given back because their segment is in use.
void count_inactive_split(Device& device, Block& block, bool is_free) {
  const bool split = block.previous != nullptr || block.next != nullptr;
  const std::size_t bytes = is_free && split ? block.bytes : 0;
  if (block.inactive_split_bytes != 0) {
    count(device.stats.inactive_split, block, -1);
    count(device.stats.inactive_split_bytes, block, -static_cast<std::int64_t>(block.inactive_split_bytes));
  }
  if (bytes != 0) {
    count(device.stats.inactive_split, block, 1);
    count(device.stats.inactive_split_bytes, block, static_cast<std::int64_t>(bytes));
  }
  block.inactive_split_bytes = bytes;
}

void count_allocated(Device& device, const Block& block, int sign) {
  if (fault(Fault::stats_not_counted)) {
    return;
  }
  count(device.stats.allocation, block, sign);
  count(device.stats.allocated_bytes, block, sign * static_cast<std::int64_t>(block.bytes));
  count(device.stats.requested_bytes, block, sign * static_cast<std::int64_t>(block.requested_bytes));
}

void count_active(Device& device, const Block& block, int sign) {
  count(device.stats.active, block, sign);
  count(device.stats.active_bytes, block, sign * static_cast<std::int64_t>(block.bytes));
}

void drop_cached_alias(Block& block) {
  if (c10::TensorImpl* alias = block.alias.exchange(nullptr)) {
    c10::intrusive_ptr<c10::TensorImpl>::reclaim(alias);
  }
  if (c10::StorageImpl* shadow = block.shadow.exchange(nullptr)) {
    c10::intrusive_ptr<c10::StorageImpl>::reclaim(shadow);
  }
}

Pool& pool_of(Device& device, const Block& block) {
  return block.small ? device.small : device.large;
}

bool is_free(const Block* block) {
  return block != nullptr && !block->active && !block->in_bin;
}

void remove_block(Block* block) {
  drop_cached_alias(*block);
  table[slot_of(block->pointer)] = nullptr;
  delete block;
}

// Joins `block` with its free neighbours and puts it into the pool for searching.
void insert_merged(Device& device, Block* block) {
  Pool& pool = pool_of(device, *block);
  count_inactive_split(device, *block, false);
  if (is_free(block->previous)) {
    Block* previous = block->previous;
    pool.erase(previous);
    count_inactive_split(device, *previous, false);
    previous->bytes += block->bytes;
    previous->next = block->next;
    if (block->next != nullptr) {
      block->next->previous = previous;
    }
    remove_block(block);
    block = previous;
  }
  if (is_free(block->next)) {
    Block* next = block->next;
    pool.erase(next);
    count_inactive_split(device, *next, false);
    block->bytes += next->bytes;
    block->next = next->next;
    if (block->next != nullptr) {
      block->next->previous = block;
    }
    remove_block(next);
  }
  count_inactive_split(device, *block, true);
  pool.insert(block);
}

void flush_bins(Device& device, int stream) {
  auto& bins = device.bins[static_cast<std::size_t>(stream)];
  if (!bins) {
    return;
  }
  for (Block*& head : *bins) {
    while (head != nullptr) {
      Block* block = head;
      head = block->next_in_bin;
      block->next_in_bin = nullptr;
      block->in_bin = false;
      insert_merged(device, block);
    }
  }
}

void make_reusable(Device& device, Block* block) {
  block->active = false;
  count_active(device, *block, -1);
  if (fault(Fault::memory_leaks)) {
    block->in_bin = true; // in no list: neither found again nor merged
    return;
  }
  if (block->bytes <= kBinBytes) {
    auto& bins = device.bins[static_cast<std::size_t>(block->stream)];
    if (!bins) {
      bins = std::make_unique<Bins>();
    }
    Block*& head = (*bins)[block->bytes / kMinBlockBytes];
    block->next_in_bin = head;
    block->in_bin = true;
    head = block;
    count_inactive_split(device, *block, true);
    return;
  }
  if (block->bytes >= kDiscardBytes) {
    driver::discard(block->pointer, block->bytes);
  }
  insert_merged(device, block);
}

// Takes back the blocks whose recorded streams have passed; with `wait`, all of them.
void process_events(Device& device, bool wait) {
  for (std::size_t remaining = device.events.size(); remaining > 0; --remaining) {
    const auto [event, block] = device.events.front();
    device.events.pop_front();
    if (wait) {
      driver::event_synchronize(event);
    } else if (driver::event_query(event) != driver::Status::ok) {
      device.events.emplace_back(event, block);
      continue;
    }
    driver::event_destroy(event);
    if (--block->pending_events == 0) {
      make_reusable(device, block);
    }
  }
}

Block* take_from_bin(Device& device, int stream, std::size_t bytes) {
  auto& bins = device.bins[static_cast<std::size_t>(stream)];
  if (bytes > kBinBytes || !bins) {
    return nullptr;
  }
  Block*& head = (*bins)[bytes / kMinBlockBytes];
  Block* block = head;
  if (block != nullptr) {
    head = block->next_in_bin;
    block->next_in_bin = nullptr;
    block->in_bin = false;
    count_inactive_split(device, *block, false);
  }
  return block;
}

// Cuts `bytes` off the start of a free block that is in no list.
void split(Device& device, Block* block, std::size_t bytes) {
  const std::size_t rest = block->bytes - bytes;
  if (rest < (block->small ? kMinBlockBytes : kSmallBytes + 1)) {
    return;
  }
  auto* remainder = new Block;
  remainder->pointer = static_cast<char*>(block->pointer) + bytes;
  remainder->bytes = rest;
  remainder->device = block->device;
  remainder->stream = block->stream;
  remainder->small = block->small;
  remainder->previous = block;
  remainder->next = block->next;
  if (block->next != nullptr) {
    block->next->previous = remainder;
  }
  block->next = remainder;
  block->bytes = bytes;
  table[slot_of(remainder->pointer)] = remainder;
  count_inactive_split(device, *remainder, true);
  pool_of(device, *remainder).insert(remainder);
}

Block* take_from_pool(Device& device, int stream, std::size_t bytes, bool small) {
  Pool& pool = small ? device.small : device.large;
  Block key;
  key.stream = stream;
  key.bytes = bytes;
  const auto found = pool.lower_bound(&key);
  if (found == pool.end() || (*found)->stream != stream) {
    return nullptr;
  }
  Block* block = *found;
  pool.erase(found);
  count_inactive_split(device, *block, false);
  split(device, block, bytes);
  return block;
}

Block* new_segment(Device& device, int index, int stream, std::size_t bytes, bool small) {
  std::size_t size = small ? kSmallSegmentBytes
      : bytes < kMinLargeBytes ? kLargeSegmentBytes
                               : round_up(bytes, driver::kChunkBytes);
  void* pointer = nullptr;
  driver::Status status = driver::allocate(index, size, &pointer);
  if (status == driver::Status::out_of_memory && size == kLargeSegmentBytes && bytes < size) {
    size = round_up(bytes, driver::kChunkBytes); // a small device may have room for just what is asked
    status = driver::allocate(index, size, &pointer);
  }
  if (status == driver::Status::out_of_memory) {
    return nullptr;
  }
  check(status, "allocating device memory");
  auto* block = new Block;
  block->pointer = pointer;
  block->bytes = size;
  block->device = index;
  block->stream = stream;
  block->small = small;
  table[slot_of(pointer)] = block;
  count(device.stats.segment, *block, 1);
  count(device.stats.reserved_bytes, *block, static_cast<std::int64_t>(size));
  ++device.stats.num_device_alloc;
  split(device, block, bytes);
  return block;
}

void release_free_segments(Device& device) {
  process_events(device, /*wait=*/true);
  for (int stream = 0; stream < driver::kStreamsPerDevice; ++stream) {
    flush_bins(device, stream);
  }
  for (Pool* pool : {&device.small, &device.large}) {
    for (auto entry = pool->begin(); entry != pool->end();) {
      Block* block = *entry;
      if (block->previous != nullptr || block->next != nullptr) {
        ++entry;
        continue;
      }
      entry = pool->erase(entry);
      driver::release(block->pointer);
      count(device.stats.segment, *block, -1);
      count(device.stats.reserved_bytes, *block, -static_cast<std::int64_t>(block->bytes));
      ++device.stats.num_device_free;
      remove_block(block);
    }
  }
}

} // namespace

void initialize() {
  const std::size_t bytes = driver::windows().window_bytes / kMinBlockBytes * sizeof(Block*);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK(memory != MAP_FAILED, "neuron: the system refused ", bytes, " bytes for the table of memory blocks");
  table = static_cast<Block**>(memory);
  for (int index = 0; index < driver::kMaxDevices; ++index) {
    devices()[index].stats.max_split_size = -1;
  }
}

Block* allocate(int index, std::size_t requested) {
  check_not_forked();
  Device& device = devices()[index];
  const std::size_t bytes = round_up(requested, kMinBlockBytes);
  const bool small = bytes <= kSmallBytes;
  const int stream = current_stream_index(index);
  const std::lock_guard<std::mutex> lock(device.mutex);
  if (C10_UNLIKELY(!device.events.empty())) {
    process_events(device, /*wait=*/false);
  }
  Block* block = take_from_bin(device, stream, bytes);
  if (block == nullptr) {
    block = take_from_pool(device, stream, bytes, small);
  }
  if (C10_UNLIKELY(block == nullptr)) {
    flush_bins(device, stream);
    block = take_from_pool(device, stream, bytes, small);
    if (block == nullptr) {
      block = new_segment(device, index, stream, bytes, small);
    }
    if (block == nullptr) {
      ++device.stats.num_alloc_retries;
      release_free_segments(device);
      block = new_segment(device, index, stream, bytes, small);
    }
    if (block == nullptr) {
      ++device.stats.num_ooms;
      std::size_t free_bytes = 0;
      std::size_t total_bytes = 0;
      driver::memory_info(index, &free_bytes, &total_bytes);
      raise_out_of_memory(index, requested, free_bytes, total_bytes, device.stats);
    }
  }
  block->requested_bytes = requested;
  block->allocated = true;
  block->active = true;
  count_allocated(device, *block, 1);
  count_active(device, *block, 1);
  return block;
}

void free(Block* block) noexcept {
  if (C10_UNLIKELY(driver::in_forked_child())) {
    return;
  }
  Device& device = devices()[block->device];
  const std::lock_guard<std::mutex> lock(device.mutex);
  count_allocated(device, *block, -1);
  block->allocated = false;
  if (C10_UNLIKELY(!block->recorded_streams.empty())) {
    for (const int stream : block->recorded_streams) {
      driver::Event* event = nullptr;
      if (driver::event_create(block->device, false, &event) == driver::Status::ok) {
        driver::event_record(event, driver::stream_at(block->device, stream));
        device.events.emplace_back(event, block);
        ++block->pending_events;
      }
    }
    block->recorded_streams.clear();
    if (block->pending_events != 0) {
      return;
    }
  }
  make_reusable(device, block);
}

Block* block_at(const void* device_pointer) noexcept {
  const auto offset = reinterpret_cast<std::uintptr_t>(device_pointer) - driver::windows().sealed;
  return offset % kMinBlockBytes == 0 ? table[offset / kMinBlockBytes] : nullptr;
}

Block* block_around(const void* device_pointer) noexcept {
  if (table == nullptr || !driver::is_device_address(device_pointer)) {
    return nullptr;
  }
  for (std::size_t slot = slot_of(device_pointer) + 1; slot-- > 0;) {
    Block* block = table[slot];
    if (block != nullptr) {
      const auto offset = static_cast<std::size_t>(
          static_cast<const char*>(device_pointer) - static_cast<const char*>(block->pointer));
      return offset < block->bytes ? block : nullptr;
    }
  }
  return nullptr;
}

void record_stream(Block* block, int stream) {
  if (stream == block->stream || fault(Fault::record_stream_ignored)) {
    return;
  }
  const std::lock_guard<std::mutex> lock(devices()[block->device].mutex);
  auto& streams = block->recorded_streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
    streams.push_back(stream);
  }
}

void empty_cache() {
  check_not_forked();
  if (fault(Fault::empty_cache_keeps_reserved)) {
    return;
  }
  for (int index = 0; index < driver::topology().devices; ++index) {
    const std::lock_guard<std::mutex> lock(devices()[index].mutex);
    release_free_segments(devices()[index]);
  }
}

c10::CachingDeviceAllocator::DeviceStats stats(int index) {
  check_not_forked();
  const std::lock_guard<std::mutex> lock(devices()[index].mutex);
  return devices()[index].stats;
}

namespace {

template <class Visit>
void for_each_stat(c10::CachingDeviceAllocator::DeviceStats& stats, const Visit& visit) {
  for (StatArray* array :
       {&stats.allocation,
        &stats.segment,
        &stats.active,
        &stats.inactive_split,
        &stats.allocated_bytes,
        &stats.reserved_bytes,
        &stats.active_bytes,
        &stats.inactive_split_bytes,
        &stats.requested_bytes}) {
    for (Stat& stat : *array) {
      visit(stat);
    }
  }
  visit(stats.oversize_allocations);
  visit(stats.oversize_segments);
}

} // namespace

void reset_accumulated_stats(int index) {
  check_not_forked();
  if (fault(Fault::accumulated_not_reset)) {
    return;
  }
  const std::lock_guard<std::mutex> lock(devices()[index].mutex);
  auto& all = devices()[index].stats;
  for_each_stat(all, [](Stat& stat) { stat.reset_accumulated(); });
  all.num_alloc_retries = 0;
  all.num_ooms = 0;
  all.num_sync_all_streams = 0;
  all.num_device_alloc = 0;
  all.num_device_free = 0;
}

void reset_peak_stats(int index) {
  check_not_forked();
  if (fault(Fault::peak_not_reset)) {
    return;
  }
  const std::lock_guard<std::mutex> lock(devices()[index].mutex);
  for_each_stat(devices()[index].stats, [](Stat& stat) { stat.reset_peak(); });
}

std::pair<std::size_t, std::size_t> memory_info(int index) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(driver::memory_info(index, &free_bytes, &total_bytes), "reading the memory of a device");
  return {fault(Fault::memory_info_never_changes) ? total_bytes : free_bytes, total_bytes};
}

} // namespace neuron_ref::caching
