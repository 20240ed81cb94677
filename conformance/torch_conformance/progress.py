"""Progress while a run goes on: a bar with the time to go on a terminal, else a plain line now and then."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from .outcome import Kind, Outcome

LINE_EVERY_S = 15.0


class Progress:
    """Shows how far a run is; use as a context manager. It writes to stderr, which leaves stdout to the results."""

    def __init__(self, total: int, before: Mapping[str, Outcome], cost: float) -> None:
        """Begin.

        Args:
            total: how many cases the whole run has.
            before: outcomes of an interrupted run that goes on.
            cost: expected seconds of the cases that are left, as the plan guesses them.
        """
        self._total = total
        self._done = len(before)
        self._cost = cost
        self._cost_done = 0.0
        self._first = True
        self._bad = 0
        self._crashed = 0
        self._start = self._said = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._bar = _bar()
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total, completed=self._done, note="starting", left="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, outcome: Outcome, cost: float, bad: bool) -> None:
        """Count one outcome."""
        if self._first:
            # The first outcome comes after torch was imported: the clock of the estimate starts behind it.
            self._first, self._start, self._cost = False, time.monotonic(), self._cost - cost
        else:
            self._cost_done += cost
        self._done += 1
        self._bad += bad
        self._crashed += outcome.kind in (Kind.CRASHED, Kind.TIMED_OUT)
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, note=self._note(), left=self._left())
        elif time.monotonic() - self._said >= LINE_EVERY_S:
            self._said = time.monotonic()
            print(f"{self._done}/{self._total} cases, {self._note()}, {self._left()}", file=sys.stderr, flush=True)

    def _note(self) -> str:
        parts = [f"{self._bad} regressions" if self._bad != 1 else "1 regression"]
        if self._crashed:
            parts.append(f"{self._crashed} crashed or hung")
        return ", ".join(parts)

    def _left(self) -> str:
        """Time to go, from the share of the expected cost that is done."""
        if self._cost_done < 0.03 * self._cost or self._cost <= 0:
            return "time to go not known yet"
        passed = time.monotonic() - self._start
        left_s = passed * max(0.0, self._cost / self._cost_done - 1)
        return f"about {left_s / 60:.0f} min to go" if left_s >= 90 else f"about {left_s:.0f} s to go"


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    return RichProgress(
        MofNCompleteColumn(),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True, no_color="NO_COLOR" in os.environ),
        transient=True,
    )
