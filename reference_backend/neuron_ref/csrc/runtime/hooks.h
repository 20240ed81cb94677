#pragma once

namespace neuron_ref {

// Registers what PyTorch's generic code asks an accelerator.
void install_hooks();

} // namespace neuron_ref
