#pragma once

namespace neuron_ref {

// Maps the device memory and registers the device with c10. Idempotent. The rename of PrivateUse1 comes before.
void initialize();

} // namespace neuron_ref
