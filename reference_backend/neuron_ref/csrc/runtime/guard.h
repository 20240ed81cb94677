#pragma once

namespace neuron_ref {

// Registers what c10 needs to switch devices and streams and to use events.
void install_guard();

} // namespace neuron_ref
