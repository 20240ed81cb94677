"""Devices: how many, which is current, what they are."""

from typing import Any

import torch

from neuron_ref import _C
from neuron_ref.device_module.index import Device, _get_device_index, checked_index
from neuron_ref.device_module.startup import _lazy_init


def is_available() -> bool:
    """Whether there is at least one device. Touches none, so it is safe before a fork."""
    return _C.device_count() > 0


def device_count() -> int:
    """How many devices this process sees. Touches none, so it is safe before a fork."""
    return _C.device_count()


def current_device() -> int:
    """Index of the device that is current in this thread."""
    _lazy_init()
    return _C.current_device()


def set_device(device: Device) -> None:
    """Make `device` current in this thread; a negative index changes nothing.

    Raises:
        ValueError: another type of device.
        RuntimeError: no device has this index.
    """
    _lazy_init()
    index = _get_device_index(device, optional=True)
    if index >= 0:
        _C.set_device(checked_index(index))


def exchange_device(device: int) -> int:
    """Make a device current and return the one that was; a negative index changes nothing and returns -1.

    Raises:
        RuntimeError: no device has this index.
    """
    if device < 0:
        return -1
    _lazy_init()
    return _C.exchange_device(checked_index(device))


def maybe_exchange_device(device: int) -> int:
    """As `exchange_device`; other backends use it to avoid touching a device, here there is no difference."""
    return exchange_device(device)


class device:
    """Make a device current inside a ``with`` block.

    Args:
        device: which; None and a negative index change nothing.
    """

    __slots__ = ("idx", "prev_idx")

    def __init__(self, device: Device) -> None:
        self.idx = -1 if device is None else _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = exchange_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        exchange_device(self.prev_idx)


class device_of(device):
    """Make the device of a tensor or storage current inside a ``with`` block; one on another device changes nothing."""

    __slots__ = ()

    def __init__(self, obj: torch.Tensor | torch.UntypedStorage | torch.TypedStorage) -> None:
        super().__init__(obj.get_device() if obj.device.type == "neuron" else -1)


def synchronize(device: Device = None) -> None:
    """Wait until all streams of `device` (by default the current one) have done what they were given."""
    _lazy_init()
    _C.synchronize(checked_index(device))


def get_device_properties(device: Device = None) -> _C.DeviceProperties:
    """Name, total memory in bytes, and model of `device` (by default the current one)."""
    _lazy_init()
    return _C.get_device_properties(checked_index(device))


def get_device_name(device: Device = None) -> str:
    """Name of `device`, one that libraries know Trainium and Inferentia devices by."""
    return get_device_properties(device).name


def get_device_capability(device: Device = None) -> dict[str, Any]:
    """What `device` can compute with, as `torch.accelerator.get_device_capability` says it: ``supported_dtypes``."""
    _lazy_init()
    return torch._C._accelerator_getDeviceCapability(checked_index(device))


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether `device` reads the memory of `peer_device` directly; any two do, and none is its own peer.

    Raises:
        RuntimeError: one of them does not exist.
    """
    return checked_index(device) != checked_index(peer_device)
