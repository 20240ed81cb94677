"""The summary that ends a run, for a person at a terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from ..judge import BAD, Verdict
from ..outcome import Kind, Outcome
from ..run_record import Results, Run

if TYPE_CHECKING:
    from rich.console import Console

GROUPS_SHOWN = 12
IDS_SHOWN = 3
STYLES = {
    Kind.PASS: "green",
    Kind.MISMATCH: "red",
    Kind.RAISED: "red",
    Kind.REFUSED: "cyan",
    Kind.CRASHED: "bold red",
    Kind.TIMED_OUT: "bold red",
    Kind.ORACLE_BROKEN: "bold magenta",
    Kind.BLOCKED: "yellow",
    Kind.NOT_RUN: "yellow",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that failed in the same way: one root cause, as far as the message tells."""

    kind: Kind
    cause: str
    outcomes: tuple[Outcome, ...]


def group_by_cause(outcomes: Iterable[Outcome]) -> list[Group]:
    """Group outcomes whose messages differ in nothing but numbers, addresses, dtypes and shapes; the largest first."""
    found: dict[tuple[Kind, str], list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault((outcome.kind, cause_of(outcome)), []).append(outcome)
    groups = [Group(kind, items[0].message, tuple(items)) for (kind, _), items in found.items()]
    return sorted(groups, key=lambda group: -len(group.outcomes))


def cause_of(outcome: Outcome) -> str:
    """The message without what differs from case to case."""
    text = outcome.blocked_by or outcome.message
    text = re.sub(r"^sample \d+: ", "", text)
    text = re.sub(r" \(\d+ of \d+ samples failed\)", "", text)
    text = re.sub(r"0x[0-9a-fA-F]+", "ADDRESS", text)
    text = re.sub(r"(torch\.)?\b(float|bfloat|int|uint|complex|bool)\d*\b", "DTYPE", text)
    text = re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "N", text)
    text = re.sub(r"\[[N, ]*\]|\([N, ]*\)", "SHAPE", text)
    return text[:300]


def console(file: TextIO | None = None, width: int | None = None) -> Console:
    """A console that keeps to NO_COLOR and writes plain text where nobody looks."""
    from rich.console import Console

    target = file or sys.stdout
    plain_width = width or (None if target.isatty() else 120)
    return Console(file=target, no_color="NO_COLOR" in os.environ, highlight=False, width=plain_width, soft_wrap=False)


def print_summary(results: Results, to: Console, rerun: str = "") -> None:
    """Counts by family and kind, failures by cause, where the results lie, and how to run the first failure again."""
    run = results.run
    to.print(_headline(run))
    to.print(_table(results))
    _print_failures(results, to)
    _print_expectations(run, to)
    to.print(f"Results: {results.path}/ (summary.json, run.jsonl, junit.xml)", markup=False)
    if run.not_run_because:
        to.print(
            f"Not run: {_many(run.counts.cases[Kind.NOT_RUN.value], 'case')}, because {run.not_run_because}",
            markup=False,
        )
    bad = [name for name in run.bad if results.outcomes[name].kind is not Kind.NOT_RUN]
    if bad:
        # Not wrapped: these are to be copied.
        to.print(f"Look at one: torch-conformance show {results.path} --case '{bad[0]}'", markup=False, soft_wrap=True)
        if rerun:
            to.print(f"Run it again: {rerun} --case '{bad[0]}'", markup=False, soft_wrap=True)
    to.print(_verdict_line(run))


def _headline(run: Run) -> str:
    from rich.markup import escape

    backend = run.backend
    parts = [f"[bold]{escape(run.spec.name)}[/bold]"]
    if backend is not None:
        named = f" ({escape(backend.device_name)})" if backend.device_name else ""
        parts.append(f"device {escape(backend.spec.device)} x {backend.count}{named}, torch {backend.torch}")
    parts.append(f"profile {run.profile}")
    if run.faults:
        parts.append(f"faults {escape(', '.join(run.faults))}")
    return ", ".join(parts) + f", {run.seconds:.1f} s"


def _table(results: Results) -> object:
    from rich import box
    from rich.table import Table

    run = results.run
    kinds = [kind for kind in Kind if kind.value in run.counts.cases]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("family")
    table.add_column("cases", justify="right")
    for kind in kinds:
        table.add_column(kind.value, justify="right", style=STYLES[kind])
    table.add_column("samples", justify="right")
    table.add_column("passed", justify="right")
    rows = [*run.families.items(), ("all", run.counts)]
    for name, counts in rows:
        if name == "all":
            table.add_section()
        samples = sum(counts.samples.values())
        share = counts.samples.get(Kind.PASS.value, 0) / samples if samples else 0.0
        table.add_row(
            name,
            str(sum(counts.cases.values())),
            *(str(counts.cases.get(kind.value, 0) or ".") for kind in kinds),
            f"{samples:,}",
            _percent(share),
        )
    return table


def _percent(share: float) -> str:
    """Never 100 % unless it is all of them."""
    return "100 %" if share == 1 else f"{int(share * 10000) / 100:.2f} %"


def _print_failures(results: Results, to: Console) -> None:
    from rich.markup import escape

    run = results.run
    wrong = [results.outcomes[name] for name in run.bad if run.verdict(name) is Verdict.REGRESSION]
    bad = [outcome for outcome in wrong if outcome.kind is not Kind.NOT_RUN]
    groups = group_by_cause(bad)
    if groups:
        to.print(f"[bold]Regressions by cause[/bold] ({_many(len(bad), 'case')}, {_many(len(groups), 'cause')})")
    for group in groups[:GROUPS_SHOWN]:
        style = STYLES[group.kind]
        first = " ".join(group.cause.split())
        text = first if len(first) <= 300 else first[:297] + "..."
        to.print(f"  [{style}]{group.kind.value}[/{style}] {len(group.outcomes)}x {escape(text)}", soft_wrap=True)
        for outcome in group.outcomes[:IDS_SHOWN]:
            to.print(f"      {outcome.id}", markup=False, soft_wrap=True)
        if len(group.outcomes) > IDS_SHOWN:
            to.print(f"      and {len(group.outcomes) - IDS_SHOWN} more")
    if len(groups) > GROUPS_SHOWN:
        to.print(f"  and {len(groups) - GROUPS_SHOWN} more causes; `torch-conformance show {results.path}` lists all")


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _print_expectations(run: Run, to: Console) -> None:
    unexpected = sorted(
        {run.deviations[name].entry for name in run.bad if run.verdict(name) is Verdict.UNEXPECTED_PASS}
    )
    for entry in unexpected:
        to.print(
            f"Unexpected pass: all that the entry '{entry}' covers passes; remove the entry",
            markup=False,
            soft_wrap=True,
        )
    for problem in run.problems:
        to.print(f"Expectation '{problem.entry}' (line {problem.line}) {problem.text}", markup=False, soft_wrap=True)
    expected = [name for name, item in run.deviations.items() if item.entry and item.verdict not in BAD]
    if expected:
        share = run.samples_expected / run.samples_planned if run.samples_planned else 0.0
        to.print(f"{len(expected)} cases deviate as expected; expectations cover {share:.4%} of the samples")


def _verdict_line(run: Run) -> str:
    regressions = run.verdicts.get(Verdict.REGRESSION.value, 0)
    unexpected = run.verdicts.get(Verdict.UNEXPECTED_PASS.value, 0)
    not_run = run.counts.cases.get(Kind.NOT_RUN.value, 0)
    if run.exit_code == 0:
        return f"[bold green]As expected[/bold green]: {_many(run.planned, 'case')}"
    parts = []
    if regressions - not_run > 0:
        parts.append(_many(regressions - not_run, "regression"))
    if unexpected:
        parts.append(f"{_many(unexpected, 'case')} passing unexpectedly")
    if run.problems:
        parts.append(f"{_many(len(run.problems), 'problem')} in the expectation file")
    if not_run:
        parts.append(f"{_many(not_run, 'case')} not run (go on with --resume)")
    return f"[bold red]Not as expected[/bold red]: {', '.join(parts) or 'see above'}"
