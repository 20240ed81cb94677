"""The backend under test as a clause sees it: a device string, the torch module for it, and what it claims."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import torch

from ..backend import BackendSpec
from .failure import Refused

WITHOUT_INDEX = ("cpu", "meta")
"""Device types whose tensors carry no index."""


class StartError(RuntimeError):
    """The backend could not be started. The text says what was tried and what to do next."""


@dataclass(frozen=True, eq=False)
class Device:
    """A backend that was started in this process.

    Attributes:
        spec: how it was started.
        type: the device type as PyTorch names it.
        count: how many devices there are, at most ``spec.devices``.
    """

    spec: BackendSpec
    type: str
    count: int

    def at(self, index: int) -> torch.device:
        """The device with that index; devices without indices have only one.

        Raises:
            StartError: when the backend has no such device.
        """
        if index >= self.count:
            raise StartError(f"got {self.count} device(s) of type {self.type}, wanted one with index {index}")
        return torch.device(self.type) if self.type in WITHOUT_INDEX else torch.device(self.type, index)

    @property
    def first(self) -> torch.device:
        """The first device."""
        return self.at(0)

    @property
    def second(self) -> torch.device:
        """The second device; only clauses with ``devices=2`` may ask."""
        return self.at(1)

    @cached_property
    def module(self) -> ModuleType:
        """``torch.<device>``, as `torch.get_device_module` finds it."""
        return torch.get_device_module(self.type)

    @property
    def is_accelerator(self) -> bool:
        """Whether `torch.accelerator` speaks of this device."""
        current = torch.accelerator.current_accelerator()
        return current is not None and current.type == self.type

    @property
    def has_index(self) -> bool:
        """Whether the devices of this type are numbered; ``cpu`` and ``meta`` are not."""
        return self.type not in WITHOUT_INDEX

    def need_index(self) -> None:
        """Leave a clause that speaks of numbered devices and `torch.accelerator` on a type that has none.

        Raises:
            Refused: on ``cpu`` and ``meta``.
        """
        if not self.has_index:
            raise Refused(f"{self.type} has no numbered devices: torch.accelerator does not speak of it")

    def claims(self, capability: str) -> bool:
        """Whether the spec file claims ``capability``."""
        return capability in self.spec.claims

    def synchronize(self, device: torch.device | None = None) -> None:
        """Wait until everything that was put on ``device`` (the first when None) is done."""
        if self.is_accelerator:
            torch.accelerator.synchronize(device or self.first)
        elif hasattr(self.module, "synchronize"):
            self.module.synchronize()

    def get_rng_state(self, device: torch.device | None = None) -> torch.Tensor:
        """State of the default generator of ``device`` (the first when None)."""
        if self.type == "cpu":
            return torch.get_rng_state()
        return self.module.get_rng_state(device or self.first)

    def set_rng_state(self, state: torch.Tensor, device: torch.device | None = None) -> None:
        """Put back a state that `get_rng_state` gave."""
        if self.type == "cpu":
            torch.set_rng_state(state)
        else:
            self.module.set_rng_state(state, device or self.first)

    @contextlib.contextmanager
    def on(self, device: torch.device) -> Iterator[None]:
        """Make ``device`` current for the block, by whichever context manager the backend has."""
        if self.is_accelerator:
            with torch.accelerator.device_index(device.index):
                yield
        else:
            yield


def start(spec: BackendSpec) -> tuple[Device, dict[str, Any]]:
    """Import and activate the backend that ``spec`` describes, switch its faults, and look whether it is there.

    Returns:
        the device, and what it says of itself: ``device, count, name, build``.

    Raises:
        StartError: when the import, the activation or the device fails; the cause is chained.
    """
    os.environ.update(spec.env)
    module = _import(spec.module, spec) if spec.module else None
    if spec.activate:
        try:
            resolve(spec.activate)()
        except Exception as error:
            raise StartError(f"{spec.name}: activation {spec.activate!r} failed: {error}") from error
    # A plain module says nothing of its device: it is the one that the import registered.
    name = spec.device or torch._C._get_privateuse1_backend_name()
    try:
        device_type = torch.device(name).type
    except RuntimeError as error:
        raise StartError(
            f"{spec.name}: after importing {spec.module or 'nothing'} PyTorch does not know the device "
            f"{name!r} ({str(error).splitlines()[0]}); check `device`, `import` and `activate` of the spec file"
        ) from error
    count = device_count(device_type)
    if count < 1:
        raise StartError(f"{spec.name}: got no available device of type {device_type}, wanted at least one")
    device = Device(spec, device_type, min(count, max(spec.devices, 1)))
    return device, {
        "device": device_type,
        "count": count,
        "name": _device_name(device),
        "build": _build_stamp(module),
    }


def device_count(device_type: str) -> int:
    """How many devices of that type can be used now; 0 when the backend says it is not available."""
    if device_type in WITHOUT_INDEX:
        return 1
    try:
        module = torch.get_device_module(device_type)
    except (RuntimeError, AssertionError, ImportError):
        module = None
    if module is not None and hasattr(module, "is_available") and not module.is_available():
        return 0
    if module is not None and hasattr(module, "device_count"):
        return int(module.device_count())
    return int(torch.accelerator.device_count())


def resolve(path: str) -> Any:
    """What ``module:attribute`` names.

    Raises:
        StartError: when the text has not that form or names nothing.
    """
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise StartError(f"got {path!r}, wanted module:function")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise StartError(f"got {path!r}, but {module} has no {part!r}")
        found = getattr(found, part)
    return found


def _import(name: str, spec: BackendSpec) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise StartError(f"{spec.name}: importing {name!r} failed: {type(error).__name__}: {error}") from error


def _device_name(device: Device) -> str:
    if device.type in WITHOUT_INDEX or not hasattr(device.module, "get_device_name"):
        return ""
    try:
        return str(device.module.get_device_name(0))
    except Exception:
        return ""  # a nicety of the report; whether names work is a clause of its own


def _build_stamp(module: ModuleType | None) -> str:
    if module is None:
        return ""
    for name in ("__build__", "build_stamp", "__version__"):
        value = getattr(module, name, None)
        if callable(value):
            value = value()
        if isinstance(value, str) and value:
            return value
    return ""
