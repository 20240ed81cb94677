"""An outcome: what happened to one case, with no opinion on whether that was expected.

Standard library only and Python 3.10 clean: the parent and the device process both import this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Kind(str, Enum):
    """What happened. The set is closed; whether it was expected is a `Judgement`."""

    PASS = "PASS"
    MISMATCH = "MISMATCH"
    """It ran and the effect is wrong: a value, a shape, a stride, a state."""
    RAISED = "RAISED"
    """It raised where it should not have."""
    REFUSED = "REFUSED"
    """A clean NotImplementedError for something that the backend does not claim."""
    CRASHED = "CRASHED"
    """The process went away, by a signal or by an exit."""
    TIMED_OUT = "TIMED_OUT"
    ORACLE_BROKEN = "ORACLE_BROKEN"
    """The suite itself failed; never the backend's fault, and it fails the run."""
    BLOCKED = "BLOCKED"
    """A prerequisite case did not pass."""
    NOT_RUN = "NOT_RUN"


WORST_FIRST = (
    Kind.ORACLE_BROKEN,
    Kind.CRASHED,
    Kind.TIMED_OUT,
    Kind.RAISED,
    Kind.MISMATCH,
    Kind.REFUSED,
    Kind.BLOCKED,
    Kind.NOT_RUN,
    Kind.PASS,
)
"""The kind of a case is the first of these that one of its samples has."""


@dataclass(frozen=True, slots=True)
class FailedSample:
    """One sample that did not pass.

    Attributes:
        index: position in the seeded OpInfo iterator.
        digest: of the sample's tensors and arguments, so that a changed sample is seen to be another one.
        kind: what happened to it.
        message: got, wanted, where.
    """

    index: int
    digest: str
    kind: Kind
    message: str


@dataclass(frozen=True, slots=True)
class Samples:
    """How many samples were planned, how many ran, and which did not pass.

    A case without samples (a clause) counts as one sample.
    """

    planned: int = 1
    run: int = 1
    failed: tuple[FailedSample, ...] = ()

    @property
    def passed(self) -> int:
        """How many ran and passed."""
        return self.run - len(self.failed)


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen beside the verdict.

    Attributes:
        bitwise_equal: samples whose results were equal to the reference bit by bit; -1 when not looked at.
        peak_bytes: peak of device memory during the case; -1 when the backend does not tell.
        fallbacks: operators that left the device.
        state_changed: what was not left as it was found (current device, stream, modes, default dtype).
        output_tail: the end of what the case printed.
        stack: the dump of a case that hung or crashed.
        exit: how the process went away: ``signal SIGSEGV`` or ``exit 0``.
    """

    bitwise_equal: int = -1
    peak_bytes: int = -1
    fallbacks: tuple[str, ...] = ()
    state_changed: tuple[str, ...] = ()
    output_tail: str = ""
    stack: str = ""
    exit: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to one case.

    Attributes:
        id: the case id as text.
        kind: what happened.
        seconds: wall time on the worker.
        message: one paragraph: got, wanted, where; empty when it passed.
        samples: counts and the failed ones.
        traceback: of the first failure, when there was an exception.
        observation: what was seen beside the verdict.
        blocked_by: the prerequisite that did not pass, when the kind is BLOCKED.
    """

    id: str
    kind: Kind
    seconds: float = 0.0
    message: str = ""
    samples: Samples = field(default_factory=Samples)
    traceback: str = ""
    observation: Observation = field(default_factory=Observation)
    blocked_by: str = ""


def worst(kinds: list[Kind]) -> Kind:
    """The kind that a case has when its samples have ``kinds``; PASS when there are none."""
    return min(kinds, key=WORST_FIRST.index, default=Kind.PASS)
