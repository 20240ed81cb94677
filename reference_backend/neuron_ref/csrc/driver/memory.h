#pragma once

#include "driver/status.h"

#include <cstddef>
#include <cstdint>

namespace neuron_ref::driver {

// Device memory is mapped twice. The address that tensors hold lies in the *sealed* window, which no host
// instruction may touch; the executor works through the *open* window at a fixed distance. Both show the
// same pages.
struct Windows {
  std::uintptr_t sealed = 0; // start of the sealed window of device 0
  std::uintptr_t open = 0; // start of the open window of device 0
  std::size_t window_bytes = 0; // of all devices together
  std::size_t device_bytes = 0; // of one device
};

namespace detail {
extern Windows windows;
} // namespace detail

inline const Windows& windows() noexcept {
  return detail::windows;
}

inline bool is_device_address(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer) - detail::windows.sealed < detail::windows.window_bytes;
}

inline bool is_open_address(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer) - detail::windows.open < detail::windows.window_bytes;
}

inline void* open_address(const void* device_pointer) noexcept {
  return reinterpret_cast<void*>(
      reinterpret_cast<std::uintptr_t>(device_pointer) - detail::windows.sealed + detail::windows.open);
}

inline void* device_address(const void* open_pointer) noexcept {
  return reinterpret_cast<void*>(
      reinterpret_cast<std::uintptr_t>(open_pointer) - detail::windows.open + detail::windows.sealed);
}

// The device that a device address belongs to; only for addresses that is_device_address accepts.
inline int device_of_address(const void* device_pointer) noexcept {
  return static_cast<int>(
      (reinterpret_cast<std::uintptr_t>(device_pointer) - detail::windows.sealed) / detail::windows.device_bytes);
}

// Maps the windows of all devices; idempotent and thread safe.
Status initialize_memory() noexcept;

// Reserves `bytes` (rounded up to chunks) and returns a device address. The contents are undefined.
Status allocate(int device, std::size_t bytes, void** pointer) noexcept;

// Gives an allocation back, after all work enqueued on the device, and returns its pages to the system.
Status release(void* pointer) noexcept;

// Returns the pages of a range to the system and keeps the range allocated; the contents become undefined.
Status discard(void* pointer, std::size_t bytes) noexcept;

// The device of a device address, interior ones included; invalid_pointer for host addresses.
Status pointer_device(const void* pointer, int* device) noexcept;

Status memory_info(int device, std::size_t* free_bytes, std::size_t* total_bytes) noexcept;

} // namespace neuron_ref::driver
