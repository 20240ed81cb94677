"""Running one sample, the same way in the oracle and in the device process."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from . import forms
from .result import Raised, capture, leaf, tensors_of

HOST_ARGUMENTS: dict[str, tuple[int, ...]] = {
    "tensor_split": (0,),
}
"""Operators with positional tensor arguments that stay on the CPU on every device, by their position after the first.

``tensor_split`` reads its indices on the host: `torch.tensor_split` documents that they must be on the CPU.
"""


@dataclass(slots=True)
class Ran:
    """What a run gave.

    Attributes:
        outputs: captured outputs, or `Raised`.
        gradients: as `result.Result.gradients`.
        raw: the outputs as the operator returned them; None when it raised.
    """

    outputs: Any
    gradients: tuple[Any, ...] | None = None
    raw: Any = None


def place(name: str, arguments: Any, device: torch.device) -> Any:
    """Put decoded arguments on a device; ``name`` decides which of them stay on the host."""
    placer = forms.Placer(device)
    host = forms.Placer(torch.device("cpu"))
    first, args, kwargs = arguments
    stay = HOST_ARGUMENTS.get(name, ())
    placed = tuple(host.place(item) if index in stay else placer.place(item) for index, item in enumerate(args))
    return placer.place(first), placed, placer.place(kwargs)


def run(operator: Callable[..., Any], arguments: Any, process: Any = None) -> Ran:
    """Call the operator; an exception is a result.

    Args:
        operator: ``OpInfo.op``.
        arguments: placed ``(input, args, kwargs)``.
        process: applied to the output before it is captured, or None.
    """
    first, args, kwargs = arguments
    try:
        raw = operator(first, *args, **kwargs)
        if process is not None:
            raw = process(raw)
        return Ran(capture(raw), raw=raw)
    except Exception as error:
        return Ran(raised(error))


def differentiable(raw: Any) -> list[torch.Tensor]:
    """The outputs that a gradient can be sent into, in order."""
    return [item for item in tensors_of(raw) if item.requires_grad]


def inputs_with_gradient(arguments: Any) -> list[torch.Tensor]:
    """The inputs whose gradients are wanted, in order."""
    return [item for item in tensors_of(arguments) if item.requires_grad and item.is_leaf]


def backward(ran: Ran, arguments: Any, cotangents: list[torch.Tensor]) -> None:
    """Send ``cotangents`` into the outputs of a run and add the inputs' gradients; an exception is its result."""
    try:
        outputs = differentiable(ran.raw)
        if len(outputs) != len(cotangents):
            raise RuntimeError(f"got {len(outputs)} outputs that require a gradient, wanted {len(cotangents)}")
        inputs = inputs_with_gradient(arguments)
        if not outputs or not inputs:
            ran.gradients = ()
            return
        found = torch.autograd.grad(outputs, inputs, cotangents, allow_unused=True)
        ran.gradients = tuple(None if item is None else leaf(item) for item in found)
    except Exception as error:
        ran.outputs = raised(error)
        ran.raw = None


def raised(error: Exception) -> Raised:
    """An exception as a result."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Raised(type(error).__name__, str(error), text, isinstance(error, NotImplementedError))
