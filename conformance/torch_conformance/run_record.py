"""A run as a record: what ``summary.json`` holds."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import codec
from .backend import Backend, BackendSpec
from .case import Case
from .errors import UsageError
from .judge import BAD, Judgement, Problem, Verdict
from .outcome import Kind, Outcome, Samples
from .run_folder import SUMMARY, read_cases, read_outcomes

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Counts:
    """How many cases and samples there are of each kind.

    A sample of a case that did not run has the kind of its case.
    """

    cases: dict[str, int] = field(default_factory=dict)
    samples: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """Everything about a run but its outcomes.

    Attributes:
        schema: of this record.
        run_id: names the run in all its files.
        command: what makes this run again.
        backend: as it described itself, or None when it never started.
        spec: how it was started.
        profile: the suite profile.
        seed: of all samples.
        faults: names of faults that were switched on.
        began: when, UTC, ISO.
        seconds: wall time of all its sessions.
        finished: whether every planned case ran.
        not_run_because: why the others did not.
        planned: how many cases it has.
        counts: in all.
        families: counts by family.
        verdicts: how many cases have each verdict.
        deviations: judgements by case id, of all cases that did not simply pass.
        problems: what is wrong with the expectation file.
        samples_planned: how many samples there are.
        samples_expected: how many of them expectations cover.
        digests: of suite, plan, expectations and overlay.
        platform: operating system and machine.
        exit_code: of the command.
    """

    run_id: str
    command: tuple[str, ...]
    spec: BackendSpec
    schema: int = SCHEMA
    backend: Backend | None = None
    profile: str = "full"
    seed: int = 0
    faults: tuple[str, ...] = ()
    began: str = ""
    seconds: float = 0.0
    finished: bool = False
    not_run_because: str = ""
    planned: int = 0
    counts: Counts = field(default_factory=Counts)
    families: dict[str, Counts] = field(default_factory=dict)
    verdicts: dict[str, int] = field(default_factory=dict)
    deviations: dict[str, Judgement] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    samples_planned: int = 0
    samples_expected: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    platform: str = ""
    exit_code: int = 0

    def verdict(self, case_id: str) -> Verdict:
        """The verdict on one case."""
        judgement = self.deviations.get(case_id)
        return judgement.verdict if judgement else Verdict.AS_EXPECTED

    @property
    def bad(self) -> list[str]:
        """Ids of the cases that are not as they should be."""
        return [name for name, judgement in self.deviations.items() if judgement.verdict in BAD]


@dataclass(frozen=True, slots=True)
class Results:
    """A run with its cases and outcomes, as read from a folder; every planned case has an outcome."""

    path: Path
    run: Run
    cases: tuple[Case, ...]
    outcomes: dict[str, Outcome]


def now() -> str:
    """The time, UTC, as records write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def complete(cases: Sequence[Case], outcomes: Mapping[str, Outcome], why: str) -> dict[str, Outcome]:
    """Exactly one outcome for each planned case, in plan order; what has none is NOT_RUN, with ``why``."""
    out = {}
    for case in cases:
        name = str(case.id)
        out[name] = outcomes.get(name) or Outcome(name, Kind.NOT_RUN, message=why, samples=Samples(run=0))
    return out


def count(outcomes: Mapping[str, Outcome]) -> tuple[Counts, dict[str, Counts]]:
    """Counts in all and by family, with families in plan order and kinds in the order of `Kind`."""
    total = Counts()
    families: dict[str, Counts] = {}
    for name, outcome in outcomes.items():
        for counts in (total, families.setdefault(name.partition("/")[0], Counts())):
            _add(counts, outcome)
    for counts in (total, *families.values()):
        for table in (counts.cases, counts.samples):
            ordered: dict[str, int] = {kind.value: table[kind.value] for kind in Kind if kind.value in table}
            table.clear()
            table.update(ordered)
    return total, families


def _add(counts: Counts, outcome: Outcome) -> None:
    counts.cases[outcome.kind.value] = counts.cases.get(outcome.kind.value, 0) + 1
    seen = counts.samples
    samples = outcome.samples
    passed = samples.passed
    if not samples.failed and outcome.kind is not Kind.PASS:
        # A clause counts as one sample and names none: what happened to it is the kind of the case.
        seen[outcome.kind.value] = seen.get(outcome.kind.value, 0) + samples.run
        passed = 0
    for sample in samples.failed:
        seen[sample.kind.value] = seen.get(sample.kind.value, 0) + 1
    left = samples.planned - samples.run
    if passed:
        seen[Kind.PASS.value] = seen.get(Kind.PASS.value, 0) + passed
    if left:
        kind = Kind.NOT_RUN if samples.run else outcome.kind
        seen[kind.value] = seen.get(kind.value, 0) + left


def read_run(path: Path) -> Run:
    """The record of a run folder.

    Raises:
        UsageError: when there is none or it is broken.
    """
    try:
        text = (path / SUMMARY).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{path} holds no finished run: {SUMMARY} cannot be read. Finish it by "
            f"`torch-conformance run ... --out {path} --resume`."
        ) from error
    try:
        return codec.loads(Run, text)
    except codec.CodecError as error:
        raise UsageError(f"{path / SUMMARY}: {error}") from error


def read_results(path: Path) -> Results:
    """A run with all its outcomes.

    Raises:
        UsageError: when the folder holds no readable run.
    """
    run = read_run(path)
    cases = read_cases(path)
    return Results(path, run, tuple(cases), complete(cases, read_outcomes(path), run.not_run_because))


def write_text(run: Run) -> str:
    """The record as the text of ``summary.json``."""
    return json.dumps(codec.to_json(run), indent=2, ensure_ascii=False) + "\n"
