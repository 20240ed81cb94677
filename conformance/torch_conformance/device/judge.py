"""Judging a result against the reference: metadata exactly, values bit by bit first and by tolerance then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from .result import Leaf, Node
from .tolerances import EXACT, Tolerance

FLOATING = ("float", "bfloat", "complex")


@dataclass(slots=True)
class Rules:
    """How to judge one result.

    Attributes:
        tolerance: from the name of a dtype to what its values may differ by.
        values: whether values are compared at all.
        device: where each tensor must lie whose reference lies on the CPU.
        zero_sign: whether the sign of zero is compared.
    """

    tolerance: Callable[[str], Tolerance]
    values: bool
    device: str
    zero_sign: bool = False


@dataclass(slots=True)
class Verdict:
    """What a comparison found.

    Attributes:
        problems: each ``where: got X, wanted Y``; empty when it passed.
        bitwise: whether every value was equal bit by bit.
        value_problems: whether all problems are values only, with the metadata as wanted.
    """

    problems: list[str] = field(default_factory=list)
    bitwise: bool = True
    value_problems: bool = True

    def metadata(self, where: str, what: str, got: Any, wanted: Any) -> None:
        """Note a difference that is not one of values."""
        self.problems.append(f"{where}: {what}: got {got}, wanted {wanted}")
        self.value_problems = False


def compare(got: Any, wanted: Any, rules: Rules, where: str, verdict: Verdict) -> None:
    """Compare two captured results, all the way down."""
    if isinstance(wanted, Leaf):
        if isinstance(got, Leaf):
            _compare_leaf(got, wanted, rules, where, verdict, rules.device)
        else:
            verdict.metadata(where, "type", _describe(got), _describe(wanted))
    elif isinstance(wanted, Node):
        if not isinstance(got, Node) or got.kind != wanted.kind or len(got.items) != len(wanted.items):
            verdict.metadata(where, "type", _describe(got), _describe(wanted))
            return
        for index, (one, other) in enumerate(zip(got.items, wanted.items, strict=True)):
            compare(one, other, rules, f"{where}[{index}]", verdict)
    elif isinstance(wanted, tuple):
        compare(Node("tuple", got) if isinstance(got, tuple) else got, Node("tuple", wanted), rules, where, verdict)
    else:
        _compare_plain(got, wanted, rules, where, verdict)


def _compare_plain(got: Any, wanted: Any, rules: Rules, where: str, verdict: Verdict) -> None:
    if type(got) is not type(wanted):
        verdict.metadata(where, "type", _describe(got), _describe(wanted))
    elif isinstance(wanted, (float, complex)) and rules.values:
        if got == wanted or (got != got and wanted != wanted):
            return
        verdict.bitwise = False
        limit = rules.tolerance("complex128" if isinstance(wanted, complex) else "float64")
        if not abs(got - wanted) <= limit.absolute + limit.relative * abs(wanted):
            verdict.problems.append(f"{where}: got {got!r}, wanted {wanted!r}")
    elif isinstance(wanted, str) and wanted == "cpu":
        if got != rules.device:
            verdict.metadata(where, "device", got, rules.device)
    elif got != wanted and (rules.values or not isinstance(wanted, (int, float, complex))):
        verdict.bitwise = False
        verdict.problems.append(f"{where}: got {got!r}, wanted {wanted!r}")


def _compare_leaf(got: Leaf, wanted: Leaf, rules: Rules, where: str, verdict: Verdict, device: str) -> None:
    if got.device != device:
        verdict.metadata(where, "device", got.device, device)
    for name in ("dtype", "layout", "shape", "requires_grad", "extra"):
        if getattr(got, name) != getattr(wanted, name):
            verdict.metadata(where, name, getattr(got, name), getattr(wanted, name))
    if got.shape == wanted.shape and _significant(got) != _significant(wanted):
        verdict.metadata(where, "strides", got.stride, wanted.stride)
    if (got.dtype, got.layout, got.shape) != (wanted.dtype, wanted.layout, wanted.shape):
        return
    if len(got.parts) != len(wanted.parts):
        verdict.metadata(where, "parts", len(got.parts), len(wanted.parts))
        return
    for index, (one, other) in enumerate(zip(got.parts, wanted.parts, strict=True)):
        _compare_leaf(one, other, rules, f"{where}.{wanted.layout}[{index}]", verdict, device)
    if not rules.values or got.data == wanted.data or wanted.data is None:
        return
    if got.data is None:
        if not device.startswith("meta"):
            verdict.metadata(where, "values", "none", "values")
        return
    verdict.bitwise = False
    problem = _compare_values(got, wanted, rules)
    if problem:
        verdict.problems.append(f"{where}: {problem}")


def _significant(leaf: Leaf) -> tuple[int, ...]:
    """Strides that decide where an element lies: of dimensions longer than one, in a tensor that has elements."""
    if 0 in leaf.shape:
        return ()
    return tuple(stride for stride, length in zip(leaf.stride, leaf.shape, strict=False) if length > 1)


def _compare_values(got: Leaf, wanted: Leaf, rules: Rules) -> str:
    """What is wrong with values that differ in some bit, or an empty text."""
    left, right = to_tensor(got), to_tensor(wanted)
    if not wanted.dtype.startswith(FLOATING):
        unequal = left.ne(right)
        return _first(left, right, unequal, "exactly") if bool(unequal.any()) else ""
    limit = rules.tolerance(wanted.dtype)
    if limit is EXACT:
        unequal = left.ne(right) & ~(left.isnan() & right.isnan())
        if rules.zero_sign and not left.is_complex():
            unequal |= left.signbit().ne(right.signbit()) & left.eq(0)
        return _first(left, right, unequal, "exactly") if bool(unequal.any()) else ""
    close = torch.isclose(left, right, rtol=limit.relative, atol=limit.absolute, equal_nan=True)
    within = f"within {limit.relative:g} relative + {limit.absolute:g} absolute"
    return "" if bool(close.all()) else _first(left, right, ~close, within)


def to_tensor(leaf: Leaf) -> torch.Tensor:
    """The values of a leaf in a type wide enough to compare them in: int64, float64 or complex128."""
    dtype = getattr(torch, "uint8" if leaf.dtype == "bool" else leaf.dtype)
    if leaf.layout == "quantized" or not (dtype.is_floating_point or dtype.is_complex):
        wide = torch.int64
    else:
        wide = torch.complex128 if dtype.is_complex else torch.float64
    if not leaf.data:
        return torch.empty(leaf.shape, dtype=wide)
    if leaf.layout == "quantized":
        dtype = {"qint8": torch.int8, "quint8": torch.uint8, "qint32": torch.int32}[leaf.dtype]
    if dtype is torch.float4_e2m1fn_x2:
        dtype, wide = torch.uint8, torch.float64
    flat = torch.frombuffer(bytearray(leaf.data), dtype=dtype)
    if dtype is torch.complex32:
        flat = torch.view_as_complex(flat.view(torch.float16).to(torch.float64).reshape(-1, 2))
    values = flat.to(wide).reshape(leaf.shape)
    return values.ne(0).to(torch.int64) if leaf.dtype == "bool" else values


def _first(got: torch.Tensor, wanted: torch.Tensor, unequal: torch.Tensor, how: str) -> str:
    places = unequal.nonzero()
    position = tuple(int(item) for item in places[0])
    text = (
        f"got {got[position].item()!r} at {list(position)}, wanted {wanted[position].item()!r} {how} "
        f"({len(places)} of {got.numel()} elements differ"
    )
    if got.dtype != torch.int64:
        gap = (got - wanted).abs()[unequal]
        finite = gap[gap.isfinite()]
        if finite.numel():
            text += f", by at most {float(finite.max()):.3g}"
    return text + ")"


def _describe(value: Any) -> str:
    if isinstance(value, Leaf):
        return f"a tensor {value.dtype}{list(value.shape)}"
    if isinstance(value, Node):
        return f"{value.kind} of {len(value.items)}"
    return f"{type(value).__name__} {value!r}"
