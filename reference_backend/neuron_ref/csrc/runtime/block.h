#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <atomic>
#include <cstddef>
#include <vector>

namespace neuron_ref {

// A part of a device memory segment; the blocks of a segment form a list without holes.
struct Block {
  void* pointer = nullptr; // device address, never to be read by the host
  std::size_t bytes = 0;
  std::size_t requested_bytes = 0;
  int device = 0;
  int stream = 0; // index of the stream that it was allocated on, and in whose order it may be used again
  bool small = false;
  bool allocated = false; // a DataPtr owns it
  bool active = false; // allocated, or freed while a recorded stream may still use it
  bool in_bin = false;
  std::size_t inactive_split_bytes = 0; // what it adds to the statistic of that name
  Block* previous = nullptr;
  Block* next = nullptr;
  Block* next_in_bin = nullptr;
  int pending_events = 0;
  std::vector<int> recorded_streams; // streams of its device, from record_stream

  // The CPU storage over the readable window, and one spare CPU tensor over it, kept so that an operator on a tensor
  // that lies in this block allocates nothing. They survive in a freed block: the next tensor there uses them too.
  std::atomic<c10::StorageImpl*> shadow{nullptr};
  std::atomic<c10::TensorImpl*> alias{nullptr};
};

} // namespace neuron_ref
