"""What counts as proof: outcomes before and after, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PASS = "PASS"
FAILURES = ("MISMATCH", "RAISED", "CRASHED", "TIMED_OUT")
"""Kinds that show a defect. REFUSED, BLOCKED, NOT_RUN and ORACLE_BROKEN show nothing about torch."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The outcome of one case as far as a proof needs it.

    Attributes:
        kind: of the outcome.
        message: what it said.
    """

    kind: str
    message: str = ""


Outcomes = Mapping[str, Seen]


def not_cured(cases: Sequence[str], before: Outcomes, after: Outcomes) -> list[str]:
    """Why some named case is no proof: each must fail before and pass after."""
    problems = []
    for case in cases:
        old, new = before.get(case), after.get(case)
        if old is None or new is None:
            problems.append(f"{case}: there is no such case on this backend")
        elif old.kind == PASS:
            problems.append(f"{case}: passes before the patch as well, so it proves nothing")
        elif old.kind not in FAILURES:
            problems.append(f"{case}: before the patch it is {old.kind} ({old.message}), which is no failure of torch")
        elif new.kind != PASS:
            problems.append(f"{case}: after the patch it is {new.kind}: {new.message}")
    return problems


def made_worse(before: Outcomes, after: Outcomes) -> list[str]:
    """Cases that passed and no longer do, or that are not there any more."""
    problems = []
    for case, old in before.items():
        new = after.get(case)
        if new is None:
            problems.append(f"{case}: {old.kind} before, not there after")
        elif old.kind == PASS and new.kind != PASS:
            problems.append(f"{case}: {old.kind} before, {new.kind} after: {new.message}")
    return problems


def changed(before: Outcomes, after: Outcomes) -> list[str]:
    """Every difference of kinds, in either direction: for a device that a patch must not touch."""
    problems = []
    for case in {**before, **after}:
        old, new = before.get(case), after.get(case)
        if old is None or new is None or old.kind != new.kind:
            problems.append(
                f"{case}: {old.kind if old else 'not there'} before, {new.kind if new else 'not there'} after"
            )
    return problems


def _kind(seen: Seen | None) -> str:
    return seen.kind if seen else "not there"
