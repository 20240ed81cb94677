"""A reference PyTorch device named ``neuron``, simulated on the CPU.

Importing this package changes nothing and does not import torch. `activate` registers the device::

    import neuron_ref

    neuron_ref.activate()
    torch.ones(2, device="neuron")

The C++ part is built once for the importable torch with ``python -m neuron_ref.build``.
"""

from neuron_ref.errors import ActivationError, BuildError, NeuronRefError, StaleBuildError

__version__ = "0.1.0"

__all__ = [
    "ActivationError",
    "BuildError",
    "NeuronRefError",
    "StaleBuildError",
    "__version__",
    "activate",
    "build_stamp",
]


def activate() -> None:
    """Register the device with torch as ``neuron``; a second call does nothing.

    The faults named in ``NEURON_REF_FAULTS`` (separated by commas) are switched on.

    Raises:
        StaleBuildError: the C++ part is missing, or was built from other sources or for another torch.
        ActivationError: torch cannot be imported, or its PrivateUse1 slot already belongs to another backend.
        ValueError: ``NEURON_REF_FAULTS`` names an unknown fault.
    """
    from neuron_ref import registration  # here, so that importing this package does not import torch

    registration.activate()


def build_stamp() -> str:
    """What the present build was made from and for, in one line; empty where there is none. Does not import torch."""
    from neuron_ref import stamp

    built = stamp.read(stamp.library_path())
    return built.describe() if built else ""
