"""Looking whether a capability is there. A probe never changes a claim: it only helps to write one."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .target import Device


def probe(device: Device) -> dict[str, bool]:
    """Whether each capability looks present, by the cheapest use of it."""
    return {name: _works(check, device) for name, check in _CHECKS.items()}


def _works(check: Callable[[Device], bool], device: Device) -> bool:
    try:
        return bool(check(device))
    except Exception:
        return False  # what cannot be used is not there


def _streams(device: Device) -> bool:
    if not device.has_index:
        return False
    stream, event = torch.Stream(device=device.first), torch.Event(device=device.first)
    event.record(stream)
    event.synchronize()
    return stream != torch.accelerator.current_stream() and event.query()


def _event_timing(device: Device) -> bool:
    if not device.has_index:
        return False
    stream = torch.Stream(device=device.first)
    first, last = (torch.Event(device=device.first, enable_timing=True) for _ in range(2))
    first.record(stream)
    last.record(stream)
    last.synchronize()
    return first.elapsed_time(last) >= 0


def _memory_stats(device: Device) -> bool:
    if not device.has_index:
        return False
    before = torch.accelerator.memory_allocated()
    held = torch.empty(1 << 20, device=device.first)
    return torch.accelerator.memory_allocated() - before >= held.nbytes


def _pinned_memory(device: Device) -> bool:
    return device.has_index and torch.ones(1).pin_memory().is_pinned()


def _autocast(device: Device) -> bool:
    if not torch.amp.is_autocast_available(device.type):
        return False
    square = torch.ones(2, 2, device=device.first)
    with torch.autocast(device.type, torch.bfloat16):
        return (square @ square).dtype is torch.bfloat16


def _generator(device: Device) -> bool:
    return device.has_index and torch.Generator(device=device.first).device.type == device.type


def _distributed(device: Device) -> bool:
    if not torch.distributed.is_available():
        return False
    return device.type in torch.distributed.Backend.default_device_backend_map


def _compile(device: Device) -> bool:
    compiled = torch.compile(lambda x: x + 1, backend="aot_eager")
    return bool((compiled(torch.zeros(2, device=device.first)) == 1).all())


def _graphs(device: Device) -> bool:
    if not device.has_index:
        return False
    graph = torch.accelerator.Graph()
    with graph:
        torch.ones(1, device=device.first)
    return True


def _isolated_memory(device: Device) -> bool:
    # Reading a device address on the host may kill the process, so the claim cannot be tried here; it is left open.
    return False


_CHECKS: dict[str, Callable[[Device], bool]] = {
    "streams": _streams,
    "event_timing": _event_timing,
    "memory_stats": _memory_stats,
    "pinned_memory": _pinned_memory,
    "autocast": _autocast,
    "generator": _generator,
    "distributed": _distributed,
    "compile": _compile,
    "graphs": _graphs,
    "multi_device": lambda device: device.count > 1,
    "isolated_memory": _isolated_memory,
}
