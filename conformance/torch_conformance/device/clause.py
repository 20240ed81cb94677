"""Clauses: one function each, what a device must do, in words, with its source and the fault that it must catch."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..backend import CAPABILITIES
from ..case import EMPTY, PROFILES, Case, CaseId
from .target import Device

Check = Callable[[Device], None]


class ClauseError(TypeError):
    """A clause that is not defined as it must be. The text names it and says what is wrong."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of the device contract.

    Attributes:
        case: the case that runs it.
        words: what a device must do, one sentence.
        source: where PyTorch says so: a documentation page or a source file with a symbol.
        fault: name of the seeded fault that this clause must catch.
        check: the function; it raises when the effect is not there.
    """

    case: Case
    words: str
    source: str
    fault: str
    check: Check


_REGISTRY: dict[str, Clause] = {}


def clause(
    id: str,
    *,
    words: str,
    source: str,
    fault: str,
    profile: str = "core",
    needs: Sequence[str] = (),
    requires: Sequence[str] = (),
    devices: int = 1,
    timeout_s: float = 0.0,
    cost: float = 0.01,
) -> Callable[[Check], Check]:
    """Register the decorated function as a clause.

    Args:
        id: ``family/subject/behaviour``; the parts for dtype and variant are added.
        words: one sentence that ends in a full stop.
        source: documentation page, or source file and symbol.
        fault: the seeded fault it must catch.
        profile: smallest profile that runs it.
        needs: capabilities without which it is refused, not run.
        requires: ids (three parts) of clauses that must pass first.
        devices: how many devices it uses; 2 implies the capability ``multi_device``.
        timeout_s: a limit of its own, in seconds; 0 for the backend's.
        cost: expected seconds, for scheduling.

    Raises:
        ClauseError: at definition, for anything missing or unknown, or an id used twice.
    """
    identifier = complete(id)
    problems = []
    if not words.endswith("."):
        problems.append("words must be a sentence that ends in a full stop")
    if not source.strip():
        problems.append("source is empty")
    if not fault.strip():
        problems.append("fault is empty: every clause names the seeded fault that it catches")
    if profile not in PROFILES:
        problems.append(f"got the profile {profile!r}, wanted one of {', '.join(PROFILES)}")
    problems += [
        f"got the capability {name!r}, wanted one of {', '.join(CAPABILITIES)}"
        for name in set(needs) - set(CAPABILITIES)
    ]
    if str(identifier) in _REGISTRY:
        problems.append("the id is used twice")
    if problems:
        raise ClauseError(f"clause {id}: " + "; ".join(problems))
    all_needs = tuple(needs)
    if devices > 1 and "multi_device" not in all_needs:
        all_needs += ("multi_device",)
    case = Case(
        id=identifier,
        profile=profile,
        cost=cost,
        needs=all_needs,
        requires=tuple(str(complete(name)) for name in requires),
        timeout_s=timeout_s,
        devices=devices,
    )

    def register(check: Check) -> Check:
        _REGISTRY[str(identifier)] = Clause(case, words, source, fault, check)
        return check

    return register


def complete(id: str) -> CaseId:
    """The case id of a clause from its three parts.

    Raises:
        ClauseError: when there are not three parts.
    """
    parts = id.split("/")
    if len(parts) != 3 or not all(parts):
        raise ClauseError(f"got the clause id {id!r}, wanted family/subject/behaviour")
    return CaseId(parts[0], parts[1], parts[2], EMPTY, EMPTY)


def load_clauses() -> dict[str, Clause]:
    """Every clause of every chapter, by case id, in the order of chapters and definitions.

    Raises:
        ClauseError: when a clause requires one that does not exist.
    """
    package = importlib.import_module("..clauses", __name__)
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda item: item.name):
        importlib.import_module(f"{package.__name__}.{info.name}")
    for identifier, entry in _REGISTRY.items():
        for required in entry.case.requires:
            if required not in _REGISTRY:
                raise ClauseError(f"clause {identifier} requires {required}, which does not exist")
    return _REGISTRY
