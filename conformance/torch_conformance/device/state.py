"""What a case must leave as it found it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .target import Device


def snapshot(device: Device) -> dict[str, str]:
    """Process-wide state by name, as text that can be compared; a part that cannot be read says why."""
    readers: dict[str, Callable[[], object]] = {
        "default dtype": torch.get_default_dtype,
        "default device": torch.get_default_device,
        "grad mode": torch.is_grad_enabled,
        "inference mode": torch.is_inference_mode_enabled,
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
        "autocast": lambda: torch.is_autocast_enabled(device.type),
        "threads": torch.get_num_threads,
    }
    if device.is_accelerator:
        readers["current device"] = torch.accelerator.current_device_index
        if device.claims("streams"):
            for index in range(device.count):
                readers[f"current stream of device {index}"] = _stream_reader(index)
    return {name: _read(reader) for name, reader in readers.items()}


def changed(before: dict[str, str], after: dict[str, str]) -> tuple[str, ...]:
    """What differs, each as ``name: got X, wanted Y``."""
    return tuple(
        f"{name}: got {after.get(name)}, wanted {value}" for name, value in before.items() if after.get(name) != value
    )


def _stream_reader(index: int) -> Callable[[], object]:
    return lambda: torch.accelerator.current_stream(index).stream_id


def _read(reader: Callable[[], object]) -> str:
    try:
        return str(reader())
    except Exception as error:
        return f"unreadable ({type(error).__name__})"
