#pragma once

#include <c10/core/Device.h>

namespace neuron_ref {

inline constexpr c10::DeviceType kNeuron = c10::DeviceType::PrivateUse1;

int device_count() noexcept;

// The calling thread's current device.
int current_device();

void set_device(int index);

// Makes `index` current and returns the previous device; a negative index changes nothing and returns -1.
int exchange_device(int index);

// Restores a device when a guard ends; never raises.
void restore_device(int index) noexcept;

// `index`, or the current device when it is negative. Raises when there is no such device.
int device_or_current(int index);

} // namespace neuron_ref
