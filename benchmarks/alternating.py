"""Measuring a ratio on a machine that others use too.

Two things are timed in turns, A B A B ..., in one process, and the ratio is taken within each turn, so that whatever
slows the machine down for a while slows both. In each turn A is also timed a second time: the ratio of A to itself is
the control, and a ratio is worth no more than its control is close to 1.
"""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Action = Callable[[], object]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Subject:
    """One side of a comparison."""

    action: Action
    """What is timed; called many times in a block."""
    finish: Action = lambda: None
    """Called once at the end of a block, inside the time taken, such as the synchronisation of a device."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """What one comparison gave."""

    name: str
    group: str
    ratio: float
    """Median over the turns of B divided by A."""
    low: float
    high: float
    """The middle half of the ratios lies between these."""
    control: float
    """Median over the turns of A divided by A."""
    baseline_us: float
    """Median time of one A, in microseconds."""
    measured_us: float
    """Median time of one B, in microseconds."""
    turns: int
    repeats: int
    """Calls in a block."""


def compare(
    name: str,
    baseline: Subject,
    measured: Subject,
    *,
    group: str = "",
    turns: int = 41,
    block_s: float = 0.002,
    clock: Clock = time.perf_counter,
) -> Ratio:
    """Time `baseline` (A) and `measured` (B) in turns.

    Args:
        name: of the comparison.
        baseline: A.
        measured: B.
        group: comparisons that belong together.
        turns: how often both are timed; odd, so that the median is one of them.
        block_s: seconds that a block of A should take at least; it holds as many calls as that needs.
        clock: seconds, for tests.
    """
    repeats = _repeats(baseline, block_s, clock)
    _block(measured, repeats, clock)  # first calls allocate and look things up
    first: list[float] = []
    second: list[float] = []
    other: list[float] = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(turns):
            early, middle, late = (_block(each, repeats, clock) for each in (baseline, measured, baseline))
            # Whether A or its control comes first changes from turn to turn, so that a drift favours neither.
            first.append(early if turn % 2 == 0 else late)
            second.append(late if turn % 2 == 0 else early)
            other.append(middle)
    finally:
        if collecting:
            gc.enable()
    # A lies on both sides of B in time; their mean is what A would have taken at B's moment.
    ratios = sorted(b / ((a + c) / 2) for a, b, c in zip(first, other, second, strict=True))
    quartile = len(ratios) // 4
    return Ratio(
        name=name,
        group=group,
        ratio=statistics.median(ratios),
        low=ratios[quartile],
        high=ratios[-1 - quartile],
        control=statistics.median(c / a for a, c in zip(first, second, strict=True)),
        baseline_us=statistics.median(first) / repeats * 1e6,
        measured_us=statistics.median(other) / repeats * 1e6,
        turns=turns,
        repeats=repeats,
    )


def _block(subject: Subject, repeats: int, clock: Clock) -> float:
    action = subject.action
    started = clock()
    for _ in range(repeats):
        action()
    subject.finish()
    return clock() - started


def _repeats(subject: Subject, block_s: float, clock: Clock) -> int:
    """How many calls a block of at least `block_s` needs; found by doubling, which warms up as well."""
    repeats = 1
    while _block(subject, repeats, clock) < block_s:
        repeats *= 2
    return repeats
