"""One case in full, or the cases of a run that fit a filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..case import Case
from ..outcome import Outcome
from ..run_record import Results
from .terminal import STYLES, group_by_cause

if TYPE_CHECKING:
    from rich.console import Console

SAMPLES_SHOWN = 20


def print_case(results: Results, case: Case, outcome: Outcome, rerun: str, to: Console) -> None:
    """Everything that is known of one case."""
    judgement = results.run.deviations.get(outcome.id)
    style = STYLES[outcome.kind]
    to.print(f"[{style}]{outcome.kind.value}[/{style}]  ", end="")
    to.print(outcome.id, markup=False)
    _line(to, "verdict", results.run.verdict(outcome.id).value)
    if judgement and judgement.entry:
        _line(to, "entry", f"{judgement.entry}: {judgement.reason}{f' ({judgement.link})' if judgement.link else ''}")
    _line(to, "message", outcome.message)
    samples = outcome.samples
    if case.sampled:
        _line(to, "samples", f"{samples.planned} planned, {samples.run} run, {len(samples.failed)} failed")
    for sample in samples.failed[:SAMPLES_SHOWN]:
        _line(to, f"  {sample.index}", f"{sample.kind.value} {sample.digest}: {sample.message}")
    if len(samples.failed) > SAMPLES_SHOWN:
        _line(to, "", f"and {len(samples.failed) - SAMPLES_SHOWN} more; --json has them all")
    seen = outcome.observation
    _line(to, "seconds", f"{outcome.seconds:g}, profile {case.profile}")
    _line(to, "exit", seen.exit)
    _line(to, "fell back", ", ".join(seen.fallbacks))
    _line(to, "left changed", ", ".join(seen.state_changed))
    if seen.peak_bytes >= 0:
        _line(to, "peak", f"{seen.peak_bytes:,} bytes of device memory")
    _line(to, "requires", ", ".join(case.requires))
    for title, text in (("traceback", outcome.traceback), ("stacks", seen.stack), ("output", seen.output_tail)):
        if text.strip():
            to.print(f"{title}:")
            to.print(text.rstrip(), markup=False, soft_wrap=True)
    to.print(f"run it again: {rerun} --case '{outcome.id}'", markup=False, soft_wrap=True)


def print_outcomes(outcomes: Sequence[Outcome], to: Console) -> None:
    """Cases grouped by what is the matter with them; all ids are given."""
    for group in group_by_cause(outcomes):
        style = STYLES[group.kind]
        to.print(f"[{style}]{group.kind.value}[/{style}] {len(group.outcomes)}x ", end="")
        to.print(" ".join(group.cause.split()), markup=False, soft_wrap=True)
        for outcome in group.outcomes:
            to.print(f"    {outcome.id}", markup=False, soft_wrap=True)


def _line(to: Console, name: str, text: str) -> None:
    if text:
        to.print(f"  {name:<13} {text}", markup=False, soft_wrap=True)
