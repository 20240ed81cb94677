"""Which device an argument means."""

import torch

from neuron_ref import _C

Device = torch.device | str | int | None


def _get_device_index(device: Device, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index that `device` names, as ``torch.cuda._utils._get_device_index`` reads it.

    Args:
        device: a ``torch.device`` or its text, an index (returned as it is, negative ones too), or None.
        optional: let None and a device without an index mean the current device.
        allow_cpu: return -1 for the CPU instead of refusing it.

    Raises:
        ValueError: another type of device, or no index where one is required.
        RuntimeError: text that names no device.
    """
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != "neuron":
            raise ValueError(f"expected a neuron device, but got {str(device)!r}")
        if device.index is not None:
            return device.index
    elif device is not None:
        raise ValueError(f"expected a device, its text or its index, but got {device!r} ({type(device).__name__})")
    if not optional:
        raise ValueError(f"expected a neuron device with an index, such as 'neuron:0', but got {device!r}")
    return _C.current_device()


def checked_index(device: Device) -> int:
    """The index of a device that exists; None and "neuron" mean the current one.

    Raises:
        ValueError: another type of device.
        RuntimeError: no device has this index.
    """
    index = _get_device_index(device, optional=True)
    count = _C.device_count()
    if not 0 <= index < count:
        raise RuntimeError(
            f"invalid device index {index}: this process sees {count} neuron device{'' if count == 1 else 's'}"
            + (f" (0 to {count - 1})" if count else " (NEURON_REF_DEVICES says how many there are)")
        )
    return index
