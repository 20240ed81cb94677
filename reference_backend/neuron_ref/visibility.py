"""What the package ``torch_neuronx`` offers, which `neuron-ref enable` writes: loading, and names that scripts use."""

import neuron_ref


def _autoload() -> None:
    """Called by ``import torch`` through the entry point group ``torch.backends``."""
    neuron_ref.activate()


def __getattr__(name: str) -> object:
    """Functions of ``torch.neuron`` are also functions of ``torch_neuronx``."""
    if name.startswith("__"):  # Python asks for some of these while it imports, before the device is there
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch

    return getattr(torch.get_device_module("neuron"), name)
