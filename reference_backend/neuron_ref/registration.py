"""Registering the device with torch, once a process."""

import os
import sys
import threading
from types import ModuleType

from neuron_ref import stamp
from neuron_ref.errors import ActivationError, BuildError

DEVICE = "neuron"

# torch's name for its third-party slot as long as no backend has taken it.
_UNNAMED = "privateuseone"

_lock = threading.Lock()
_active = False
_failure: BaseException | None = None


def activate() -> None:
    """See `neuron_ref.activate`."""
    global _active, _failure
    with _lock:
        if _active:
            return
        if _failure is not None:
            raise ActivationError(
                f"the device cannot be activated twice after it failed: torch's slot for it is already named.\n"
                f"  got:    {_failure}\n  do:     correct this and start a new process"
            ) from _failure
        _check()
        try:
            _register()
        except BaseException as error:
            _failure = error
            raise
        _active = True
    _switch_faults()


def is_active() -> bool:
    return _active


def _check() -> None:
    """Refuse, before anything is changed, what cannot succeed."""
    try:
        stamp.check()
    except BuildError as error:
        raise ActivationError(str(error)) from error
    import torch

    name = torch._C._get_privateuse1_backend_name()
    if name != _UNNAMED or hasattr(torch, DEVICE):
        owner = getattr(sys.modules.get(f"torch.{name}"), "__name__", "an unknown module")
        raise ActivationError(
            "torch has one slot for a third-party device in a process, and it is taken.\n"
            f"  got:    PrivateUse1 is named {name!r} (torch.{name} is {owner})\n"
            f"  wanted: PrivateUse1 still named {_UNNAMED!r}\n"
            "  do:     use one backend a process; TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps installed ones from loading"
        )


def _register() -> None:
    import torch
    from torch.utils.backend_registration import (
        generate_methods_for_privateuse1_backend,
        rename_privateuse1_backend,
    )

    from neuron_ref import _C

    rename_privateuse1_backend(DEVICE)
    _C.initialize()
    from neuron_ref import device_module

    torch._register_device_module(DEVICE, device_module)
    _alias_submodules(device_module)
    generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )


def _alias_submodules(package: ModuleType) -> None:
    """Let ``import torch.neuron.random`` find the module that already exists, not load a second copy of it."""
    prefix = f"{package.__name__}."
    for name, module in list(sys.modules.items()):
        if name.startswith(prefix):
            sys.modules[f"torch.{DEVICE}.{name.removeprefix(prefix)}"] = module


def _switch_faults() -> None:
    names = [name.strip() for name in os.environ.get("NEURON_REF_FAULTS", "").split(",") if name.strip()]
    if names:
        from neuron_ref import faults

        faults.switch(names)
