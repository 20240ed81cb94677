"""Results as they travel from the device to the oracle: metadata as the device reports it, and bytes."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import torch

from .forms import COMPRESSED, leaves, name_of


@dataclass(slots=True)
class Leaf:
    """A tensor of a result.

    Attributes:
        device, dtype, layout: as text.
        shape, stride: of the tensor; stride only of strided ones.
        requires_grad: of the tensor.
        data: contiguous values; None where there are none (meta), or where the layout has parts.
        parts: the tensors that a sparse, nested or quantized tensor is made of.
        extra: plain values of such a tensor.
    """

    device: str
    dtype: str
    layout: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool
    data: bytes | None = None
    parts: tuple[Leaf, ...] = ()
    extra: tuple[Any, ...] = ()


@dataclass(slots=True)
class Node:
    """A container of a result: its type by name and its items."""

    kind: str
    items: tuple[Any, ...]


@dataclass(slots=True)
class Raised:
    """An exception instead of a result."""

    type: str
    message: str
    traceback: str
    refusal: bool


@dataclass(slots=True)
class Draw:
    """One run of a random operator: its result, and which generators the first of them advanced."""

    result: Any
    device_advanced: bool = False
    host_advanced: bool = False


@dataclass(slots=True)
class Result:
    """What one sample did on the device.

    Attributes:
        device: the device the sample was put on, as text.
        outputs: structure of `Leaf`, `Node` and plain values, or `Raised`.
        gradients: of each input that requires one, in order; None where there is none. None unless asked for.
        inputs: the inputs' tensors after the run, in order; None when all hold the bytes they had.
        draws: further runs of a random operator, one for each seed asked for.
        digest: of a sample that this process made itself, else empty.
    """

    device: str
    outputs: Any
    gradients: tuple[Leaf | None, ...] | None = None
    inputs: tuple[Leaf, ...] | None = None
    draws: tuple[Draw, ...] = ()
    digest: str = ""


def capture(value: Any) -> Any:
    """A result as it travels: tensors become `Leaf`, containers `Node`, plain values stay, others become their type."""
    if isinstance(value, torch.Tensor):
        return leaf(value)
    if isinstance(value, (tuple, list)):
        return Node(type(value).__name__, tuple(capture(item) for item in value))
    if isinstance(value, dict):
        return Node("dict", tuple((key, capture(item)) for key, item in value.items()))
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    if isinstance(value, (torch.dtype, torch.layout, torch.device, torch.memory_format)):
        return str(value)
    return Node(type(value).__name__, ())


def leaf(tensor: torch.Tensor) -> Leaf:
    """Metadata and values of one tensor on any device."""
    plain = tensor.detach()
    head = (str(plain.device), name_of(plain.dtype))
    needs_grad = tensor.requires_grad
    if plain.is_nested:
        parts = tuple(leaf(part) for part in plain.unbind())
        return Leaf(*head, "nested", (), (), needs_grad, parts=parts)
    shape = tuple(plain.shape)
    if plain.layout == torch.sparse_coo:
        parts = (leaf(plain._indices()), leaf(plain._values()))
        return Leaf(*head, "sparse_coo", shape, (), needs_grad, parts=parts, extra=(plain.is_coalesced(),))
    if plain.layout in COMPRESSED:
        parts = tuple(leaf(getattr(plain, name)()) for name in (*COMPRESSED[plain.layout], "values"))
        return Leaf(*head, name_of(plain.layout), shape, (), needs_grad, parts=parts)
    if plain.layout != torch.strided:
        return Leaf(*head, name_of(plain.layout), shape, (), needs_grad, parts=(leaf(plain.to_dense()),))
    stride = tuple(plain.stride())
    if plain.is_quantized:
        return Leaf(*head, "quantized", shape, stride, needs_grad, host_bytes(plain.int_repr()))
    return Leaf(*head, "strided", shape, stride, needs_grad, host_bytes(plain))


def host_bytes(tensor: torch.Tensor) -> bytes | None:
    """The values of a strided tensor, contiguous, as bytes; None where a device holds none."""
    if tensor.device.type == "meta":
        return None
    if tensor._is_zerotensor():
        return bytes(tensor.numel() * tensor.element_size())  # it has no memory that could be read
    host = tensor.cpu().resolve_conj().resolve_neg().contiguous()
    size = host.numel() * host.element_size()
    return ctypes.string_at(host.data_ptr(), size) if size else b""


def leaves_of(result: Any) -> list[tuple[str, Leaf]]:
    """Every `Leaf` of a captured result with its place, in order."""
    if isinstance(result, Leaf):
        return [("", result)]
    if isinstance(result, Node):
        found = []
        for index, item in enumerate(result.items):
            found += [(f"[{index}]{place}", one) for place, one in leaves_of(item)]
        return found
    if isinstance(result, tuple):
        return leaves_of(Node("", result))
    return []


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Every tensor of an operator's arguments or output, in order."""
    return leaves(value, torch.Tensor)
