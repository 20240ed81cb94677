"""Streams and events, with the meanings of ``torch.cuda.Stream`` and ``torch.cuda.Event``."""

from typing import Any

import torch

from neuron_ref import _C
from neuron_ref.device_module.devices import exchange_device
from neuron_ref.device_module.index import Device, checked_index
from neuron_ref.device_module.startup import _lazy_init

_DEFAULT_STREAM_ID = 0  # as c10::Stream::DEFAULT has it


class Stream(torch.Stream):
    """A queue of work of one device; what is enqueued runs in order, beside other streams.

    Args:
        device: the device that it belongs to; by default the current one.
        priority: lower numbers run first; numbers outside the range of the device mean the nearest in it.
    """

    def __new__(cls, device: Device = None, priority: int = 0, **identity: int) -> "Stream":
        _lazy_init()
        if "stream_id" in identity:
            return super().__new__(cls, priority=priority, **identity)  # type: ignore[return-value]
        where = torch.device("neuron", checked_index(device))
        return super().__new__(cls, device=where, priority=priority)  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"torch.neuron.Stream(device={self.device}, stream_id={self.stream_id})"


class _EventType(type):
    """Makes an event of any origin, such as ``stream.record_event()``, an instance of `Event`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Event) and instance.device.type == "neuron"


class Event(metaclass=_EventType):
    """A point in the work of a stream that others can wait for, and that can take the time.

    Calling this makes a plain `torch.Event`, because torch takes no subclass of it in `torch.Event.elapsed_time` and
    `torch.Stream.record_event`.

    Args:
        enable_timing: let `elapsed_time` measure between two events.
        blocking: let `synchronize` sleep instead of spin.
        interprocess: let other processes open the event.
    """

    def __new__(  # type: ignore[misc]
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:
        _lazy_init()
        return torch.Event(device="neuron", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


def _wrap(stream: torch.Stream) -> Stream:
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def current_stream(device: Device = None) -> Stream:
    """The stream that operators on `device` (by default the current one) use in this thread."""
    _lazy_init()
    return _wrap(torch._C._accelerator_getStream(checked_index(device)))


def default_stream(device: Device = None) -> Stream:
    """The stream that is current on `device` until another is set."""
    index = checked_index(device)
    kind = torch._C._accelerator_getStream(index).device_type
    return Stream(stream_id=_DEFAULT_STREAM_ID, device_index=index, device_type=kind)


def set_stream(stream: torch.Stream | None) -> None:
    """Make `stream`, and the device that it belongs to, current in this thread; None changes nothing."""
    if stream is None:
        return
    _lazy_init()
    exchange_device(stream.device_index)
    torch._C._accelerator_setStream(stream)


class StreamContext:
    """Make a stream and its device current inside a ``with`` block.

    Args:
        stream: which; None changes nothing.
    """

    __slots__ = ("_previous_device", "_previous_stream", "stream")

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._previous_device = -1
        self._previous_stream: Stream | None = None

    def __enter__(self) -> None:
        if self.stream is None:
            return
        _lazy_init()
        self._previous_device = _C.current_device()
        self._previous_stream = current_stream(self.stream.device_index)
        set_stream(self.stream)

    def __exit__(self, *exception: object) -> None:
        if self._previous_stream is None:
            return
        set_stream(self._previous_stream)
        exchange_device(self._previous_device)


def stream(stream: torch.Stream | None) -> StreamContext:
    """A context in which `stream` and its device are current."""
    return StreamContext(stream)


def _sleep(seconds: float, stream: torch.Stream | None = None) -> None:
    """Let a stream (by default the current one) do nothing for a while, and return at once; for tests.

    Args:
        seconds: how long.
        stream: which stream waits.
    """
    _lazy_init()
    where: Any = stream if stream is not None else current_stream()
    _C.sleep(float(seconds), where.device_index, where.stream_id)
