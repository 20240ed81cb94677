"""Faults at the Python entry points of torch: what a backend's Python part or PyTorch's own layers can get wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .target import Device

Apply = Callable[[Device], None]

ENTRY_FAULTS: dict[str, Apply] = {}
"""By name; the docstring of each says what goes wrong."""


def entry_fault(apply: Apply) -> Apply:
    """Register a fault under the name of its function."""
    assert apply.__doc__, f"{apply.__name__} does not say what it breaks"
    ENTRY_FAULTS[apply.__name__] = apply
    return apply


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put ``make(original)`` in the place of an attribute."""
    setattr(owner, name, make(getattr(owner, name)))


@entry_fault
def to_always_copies(device: Device) -> None:
    """Tensor.to returns a copy where nothing changes."""
    _replace(torch.Tensor, "to", lambda to: lambda self, *args, **kwargs: to(self, *args, **{**kwargs, "copy": True}))


@entry_fault
def like_forgets_device(device: Device) -> None:
    """zeros_like makes its tensor on the CPU unless a device is named."""
    _replace(torch, "zeros_like", lambda like: lambda x, **kwargs: like(x, **{"device": "meta", **kwargs}))


@entry_fault
def numpy_reads_device_memory(device: Device) -> None:
    """Tensor.numpy copies a device tensor to the host without being asked."""
    _replace(torch.Tensor, "numpy", lambda numpy: lambda self: numpy(self.cpu()))


@entry_fault
def accelerator_not_registered(device: Device) -> None:
    """torch.accelerator knows of no device."""
    _replace(torch.accelerator, "is_available", lambda _: lambda: False)


@entry_fault
def reserved_below_allocated(device: Device) -> None:
    """memory_reserved does not count what is in use."""
    _replace(torch.accelerator, "memory_reserved", lambda _: lambda *args: 0)


@entry_fault
def out_of_memory_is_runtime_error(device: Device) -> None:
    """Running out of memory raises a plain RuntimeError."""

    def make(empty: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def wrong(*args: Any, **kwargs: Any) -> torch.Tensor:
            try:
                return empty(*args, **kwargs)
            except torch.OutOfMemoryError as error:
                raise RuntimeError(str(error)) from None

        return wrong

    _replace(torch, "empty", make)


@entry_fault
def rng_state_is_live(device: Device) -> None:
    """A state that was read goes on changing with the generator."""
    owner, name = (torch, "get_rng_state") if device.type == "cpu" else (device.module, "get_rng_state")
    read = getattr(owner, name)
    live = read()
    setattr(owner, name, lambda *args: live)
    _replace(torch, "rand", lambda rand: lambda *args, **kwargs: (rand(*args, **kwargs), live.copy_(read()))[0])


@entry_fault
def current_device_is_per_process(device: Device) -> None:
    """All threads share one current device."""
    current = [0]

    def set_index(index: int) -> None:
        current[0] = index

    _replace(torch.accelerator, "current_device_index", lambda _: lambda: current[0])
    _replace(torch.accelerator, "set_device_index", lambda _: set_index)


@entry_fault
def current_stream_is_per_process(device: Device) -> None:
    """A new thread finds the stream that another thread made current."""
    import threading

    main = threading.main_thread()
    latest: list[Any] = []

    def make(current: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: latest[-1] if threading.current_thread() is not main and latest else current(*args)

    _replace(torch.accelerator, "current_stream", make)
    stream_type = torch.Stream

    def made(*args: Any, **kwargs: Any) -> Any:
        latest.append(stream_type(*args, **kwargs))
        return latest[-1]

    torch.Stream = made  # type: ignore[assignment, misc]


@entry_fault
def module_not_available(device: Device) -> None:
    """torch.NAME says that it is not available."""
    _replace(device.module, "is_available", lambda _: lambda: False)


@entry_fault
def sum_reads_before_it_waits(device: Device) -> None:
    """Reading a result on the host does not wait for work that is still to run."""
    _replace(torch.Tensor, "item", lambda item: lambda self: type(item(self))(0))


@entry_fault
def mismatched_pin_is_accepted(device: Device) -> None:
    """pin_memory takes device memory for host memory."""
    _replace(torch.Tensor, "pin_memory", lambda pin: lambda self, *args: pin(self.cpu(), *args))


@entry_fault
def device_context_ignored(device: Device) -> None:
    """`with torch.device(...)` changes nothing."""
    from torch.utils._device import DeviceContext

    DeviceContext.__torch_function__ = (  # type: ignore[method-assign]
        lambda self, function, types, args=(), kwargs=None: function(*args, **(kwargs or {}))
    )


@entry_fault
def current_stream_is_always_default(device: Device) -> None:
    """The current stream is reported as the default one, whatever was made current."""
    first = [torch.accelerator.current_stream(index) for index in range(device.count)]
    current = torch.accelerator.current_device_index
    _replace(
        torch.accelerator, "current_stream", lambda _: lambda index=None: first[current() if index is None else index]
    )


@entry_fault
def resize_keeps_memory(device: Device) -> None:
    """Resizing a storage to nothing keeps its memory."""
    _replace(torch.UntypedStorage, "resize_", lambda resize: lambda self, size: resize(self, size) if size else self)


@entry_fault
def rng_draws_from_the_host(device: Device) -> None:
    """Random numbers for the device take some from the CPU's generator."""

    def make(rand: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        return lambda *args, **kwargs: (rand(1), rand(*args, **kwargs))[1]

    _replace(torch, "rand", make)


@entry_fault
def cpu_generator_accepted(device: Device) -> None:
    """A generator of the CPU is ignored where the device's is wanted."""
    _replace(torch.Tensor, "uniform_", lambda uniform: lambda self, *args, generator=None: uniform(self, *args))


@entry_fault
def error_swallowed(device: Device) -> None:
    """Operators that must refuse their arguments return something instead."""

    def make(operator: Callable[..., Any]) -> Callable[..., Any]:
        def wrong(first: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return operator(first, *args, **kwargs)
            except (RuntimeError, IndexError):
                return first

        return wrong

    for name in ("__add__", "__sub__", "add_", "mean", "sum", "unsqueeze", "__getitem__"):
        _replace(torch.Tensor, name, make)
    _replace(torch, "mm", make)
    _replace(torch.linalg, "inv", make)


@entry_fault
def device_name_wrong(device: Device) -> None:
    """torch.device gives another type than the one that is named."""
    made = torch.device

    class Kind(type):
        def __instancecheck__(cls, item: object) -> bool:
            return type(item) is made  # only what is made is wrong: whoever asks what a device is gets the truth

    class Wrong(metaclass=Kind):
        def __new__(cls, *args: Any) -> Any:
            return made("meta")

    _replace(torch, "device", lambda _: Wrong)


@entry_fault
def slot_name_wrong(device: Device) -> None:
    """PyTorch's open slot does not report the name that its device took, and reports the name of one that did not."""
    wrong = "privateuseone" if torch._C._get_privateuse1_backend_name() == device.type else device.type
    _replace(torch._C, "_get_privateuse1_backend_name", lambda _: lambda: wrong)


@entry_fault
def untimed_events_have_time(device: Device) -> None:
    """Every event measures time, asked for or not."""
    _replace(torch, "Event", lambda event: lambda *args, **kwargs: event(*args, **{**kwargs, "enable_timing": True}))


@entry_fault
def stream_runs_out_of_order(device: Device) -> None:
    """A product in place happens after the sum that was put on the stream behind it."""
    waiting: list[float] = []
    multiply = torch.Tensor.mul_

    def later(self: torch.Tensor, factor: float) -> torch.Tensor:
        waiting.append(factor)
        return self

    def make(add: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def wrong(self: torch.Tensor, other: Any) -> torch.Tensor:
            out = add(self, other)
            return multiply(out, waiting.pop()) if waiting else out

        return wrong

    _replace(torch.Tensor, "mul_", lambda _: later)
    _replace(torch.Tensor, "add_", make)
