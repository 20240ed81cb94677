"""Which cases there are on a device, in plan order."""

from __future__ import annotations

from collections.abc import Sequence

from ..case import Case, CaseId
from . import internals
from .clause import load_clauses
from .costs import cost_of
from .target import Device

OP = "op"
FORWARD = "forward"
BACKWARD = "backward"


def families() -> tuple[str, ...]:
    """Names of the families, in plan order."""
    return (*dict.fromkeys(entry.case.id.family for entry in load_clauses().values()), OP)


def list_cases(device: Device, wanted: Sequence[str] | None) -> list[Case]:
    """Every case of the wanted families, for every profile.

    Args:
        device: the started backend; its type and the claimed dtypes decide which operator cases there are.
        wanted: families; None for all.

    Raises:
        ValueError: for a family that does not exist.
    """
    known = families()
    for name in wanted or ():
        if name not in known:
            raise ValueError(f"got the family {name!r}, wanted one of {', '.join(known)}")
    chosen = known if wanted is None else wanted
    cases = [entry.case for entry in load_clauses().values() if entry.case.id.family in chosen]
    if OP in chosen:
        cases += _operators(device)
    return cases


def _operators(device: Device) -> list[Case]:
    cases = []
    for name, info in internals.op_infos().items():
        dtypes = internals.forward_dtypes(info, device.type)
        if device.spec.dtypes:
            dtypes = tuple(dtype for dtype in dtypes if dtype in device.spec.dtypes)
        # One dtype is enough to see that an operator exists at all.
        smoke = "float32" if "float32" in dtypes else next(iter(dtypes), "")
        for dtype in dtypes:
            cases.append(_case(name, FORWARD, dtype, "smoke" if dtype == smoke else "core"))
        if "float32" in dtypes and internals.supports_backward(info, device.type, "float32"):
            cases.append(_case(name, BACKWARD, "float32", "core"))
    return sorted(cases, key=lambda case: -case.cost)


def _case(name: str, behaviour: str, dtype: str, profile: str) -> Case:
    return Case(
        id=CaseId(OP, name, behaviour, dtype),
        profile=profile,
        cost=cost_of(name, behaviour, dtype),
        sampled=True,
    )
