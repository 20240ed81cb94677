"""Assertions of clauses. Each says what was got, what was wanted and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .failure import Mismatch


def equal(got: Any, wanted: Any, where: str) -> None:
    """Fail unless ``got == wanted``."""
    if got != wanted:
        raise Mismatch(f"{where}: got {got!r}, wanted {wanted!r}")


def true(condition: bool, got: Any, wanted: str, where: str) -> None:
    """Fail unless ``condition``; ``got`` and ``wanted`` say what that means."""
    if not condition:
        raise Mismatch(f"{where}: got {got!r}, wanted {wanted}")


def on_device(tensor: torch.Tensor, device: torch.device, where: str) -> None:
    """Fail unless ``tensor`` lies on exactly ``device``."""
    equal(str(tensor.device), str(device), f"{where}: device")


def values(got: torch.Tensor, wanted: torch.Tensor, where: str) -> None:
    """Fail unless ``got`` has the dtype, shape and values (NaN equal to NaN) of ``wanted``, which is on the CPU."""
    equal(got.dtype, wanted.dtype, f"{where}: dtype")
    equal(tuple(got.shape), tuple(wanted.shape), f"{where}: shape")
    host = got.detach().to("cpu")
    equal(str(host.device), "cpu", f"{where}: device after .to('cpu')")
    if host.numel() and not same(host, wanted):
        raise Mismatch(f"{where}: {first_difference(host, wanted)}")


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two CPU tensors of one dtype and shape hold the same values, NaN equal to NaN."""
    if torch.equal(left, right):
        return True
    if left.is_floating_point() or left.is_complex():
        return bool((left.eq(right) | (left.isnan() & right.isnan())).all())
    return False


def first_difference(got: torch.Tensor, wanted: torch.Tensor) -> str:
    """Where two CPU tensors of one shape first differ, and how often."""
    unequal = got.ne(wanted)
    if got.is_floating_point() or got.is_complex():
        unequal &= ~(got.isnan() & wanted.isnan())
    where = unequal.nonzero()
    if not len(where):
        return "got equal values"
    position = tuple(int(item) for item in where[0])
    return (
        f"got {got[position].item()!r} at {list(position)}, wanted {wanted[position].item()!r} "
        f"({len(where)} of {got.numel()} elements differ)"
    )


def raises(
    kinds: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], Any], where: str, says: str = ""
) -> BaseException:
    """Fail unless ``call`` raises one of ``kinds`` with ``says`` in its text, in any case; gives the exception."""
    wanted = " or ".join(kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
    try:
        result = call()
    except kinds as error:
        if says and says.lower() not in str(error).lower():
            raise Mismatch(
                f"{where}: got {type(error).__name__} saying {str(error)[:300]!r}, wanted it to say {says!r}"
            ) from error
        return error
    except Exception as error:
        raise Mismatch(f"{where}: got {type(error).__name__}: {str(error)[:300]}, wanted {wanted}") from error
    raise Mismatch(f"{where}: got no exception (it gave {type(result).__name__}), wanted {wanted}")


def near(got: float, wanted: float, within: float, where: str) -> None:
    """Fail unless two numbers are at most ``within`` apart; NaN is near nothing."""
    if not abs(got - wanted) <= within:
        raise Mismatch(f"{where}: got {got:.6g}, wanted {wanted:.6g} within {within:.3g}")


def close(got: torch.Tensor, wanted: torch.Tensor, where: str, relative: float) -> None:
    """Fail unless dtype and shape are equal and values agree within ``relative`` of the largest wanted magnitude."""
    equal(got.dtype, wanted.dtype, f"{where}: dtype")
    equal(tuple(got.shape), tuple(wanted.shape), f"{where}: shape")
    host = got.detach().to("cpu")
    if host.numel() and not bool((host - wanted).abs().max() <= relative * wanted.abs().max()):
        raise Mismatch(f"{where}: {first_difference(host, wanted)}, within {relative:g} of the largest")
