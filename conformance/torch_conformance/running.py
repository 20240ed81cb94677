"""What `torch-conformance run` does: plan, pytest, record, judge, report."""

from __future__ import annotations

import dataclasses
import os
import platform
import signal
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import digest
from .backend import Backend, BackendSpec
from .case import Case
from .errors import EXIT_EXPECTED, EXIT_FINDINGS, EXIT_START, BackendStartError, UsageError
from .expectation import Expectation, read_expectations
from .judge import BAD, Judge, Judgement, Verdict
from .outcome import Kind, Outcome
from .plan import Plan, load_plan
from .progress import Progress
from .report.junit import junit
from .run_folder import (
    JUNIT,
    RUN_LINES,
    SUMMARY,
    RunFolder,
    Task,
    default_path,
    read_cases,
    read_outcomes,
    read_task,
    runs_newest_first,
)
from .run_record import Results, Run, complete, count, now, read_run, write_text
from .selection import Selection, select, why_nothing


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for.

    Attributes:
        spec: the backend.
        selection: which cases, the suite profile included.
        workers: pytest-xdist workers; 0 runs in this process.
        out: the run folder, or None for a new one below ``runs/``.
        resume: go on with the run that the folder holds.
        seed: of all samples and clauses.
        faults: names of faults to switch on.
        command: the words of the command line.
        rerun: the command that runs one case again, but for the case.
    """

    spec: BackendSpec
    selection: Selection
    workers: int = 0
    out: Path | None = None
    resume: bool = False
    seed: int = 0
    faults: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    rerun: str = ""


def run(request: Request) -> Results:
    """Run the selected cases and write the run folder.

    Returns:
        The results; `Run.exit_code` is the exit code of the command. When the run is interrupted, what was measured is
        kept and the rest is NOT_RUN.

    Raises:
        UsageError: before anything runs, when the request cannot be carried out.
        BackendStartError: when the backend could not be started at all.
    """
    spec, profile = request.spec, request.selection.profile
    entries = expectations_of(spec)
    path = request.out or (_unfinished(request) if request.resume else None) or default_path(spec.name, profile)
    with RunFolder(path, resume=request.resume) as folder:
        plan = load_plan(spec, families=request.selection.families or None)
        cases = select(plan.cases, request.selection)
        if not cases:
            raise UsageError(f"there is nothing to run: {why_nothing(plan.cases, request.selection)}")
        before = _resumed(folder, request, cases, plan)
        folder.plan(cases)
        return _Running(request, folder, plan, cases, entries, before).results()


def expectations_of(spec: BackendSpec) -> tuple[Expectation, ...]:
    """The entries of the expectation file of a spec; none when it names no file, or one that is still to be written.

    Raises:
        UsageError: when the file is broken.
    """
    file = Path(spec.expectations) if spec.expectations else None
    return read_expectations(file) if file is not None and file.exists() else ()


def _unfinished(request: Request) -> Path | None:
    """The newest run below ``runs/`` of this backend and profile that did not come to its end."""
    for path in runs_newest_first():
        try:
            task, _, _ = read_task(path)
        except (OSError, ValueError):
            continue
        if task.spec.name == request.spec.name and task.profile == request.selection.profile:
            finished = (path / SUMMARY).exists() and read_run(path).finished
            return None if finished else path
    return None


def _resumed(folder: RunFolder, request: Request, cases: Sequence[Case], plan: Plan) -> dict[str, Outcome]:
    """The outcomes that the folder already holds.

    Raises:
        UsageError: when they were measured with another suite, backend, seed or selection.
    """
    if not request.resume or not (folder.path / RUN_LINES).exists():
        return {}
    task, asked = read_task(folder.path)[0], _task(request, plan)
    differ = []
    if task.digests.get("suite") != asked.digests["suite"]:
        differ.append("the suite changed")
    elif task.digests.get("plan") != asked.digests["plan"]:
        differ.append("torch or the backend changed")
    for name in ("spec", "profile", "seed", "faults"):
        if getattr(task, name) != getattr(asked, name):
            differ.append(f"{name} is another")
    if [str(case.id) for case in read_cases(folder.path)] != [str(case.id) for case in cases]:
        differ.append("other cases are selected")
    if differ:
        raise UsageError(
            f"cannot go on with the run in {folder.path.absolute()}: {', '.join(dict.fromkeys(differ))}. Results of "
            "different runs must not be mixed; name another folder with --out."
        )
    wanted = {str(case.id) for case in cases}
    kept = {name: item for name, item in read_outcomes(folder.path).items() if item.kind is not Kind.NOT_RUN}
    return {name: item for name, item in kept.items() if name in wanted}


def _task(request: Request, plan: Plan) -> Task:
    file = request.spec.expectations
    return Task(
        spec=request.spec,
        profile=request.selection.profile,
        seed=request.seed,
        faults=request.faults,
        expectations=file if file and Path(file).exists() else "",
        rerun=request.rerun,
        run_id=uuid.uuid4().hex[:12],
        began=now(),
        digests={"suite": digest.of_suite(), "plan": plan.key},
    )


class _Running:
    """One run from its plan to its reports."""

    def __init__(
        self,
        request: Request,
        folder: RunFolder,
        plan: Plan,
        cases: list[Case],
        entries: tuple[Expectation, ...],
        before: dict[str, Outcome],
    ) -> None:
        self._request = request
        self._folder = folder
        self._plan = plan
        self._cases = cases
        self._entries = entries
        self._outcomes = dict(before)
        self._start = time.monotonic()
        self._seconds_before = 0.0
        self._backend: Backend | None = None
        self._task = _task(request, plan)
        if before:
            old = read_task(folder.path)[0]
            self._task = dataclasses.replace(self._task, run_id=old.run_id, began=old.began)
            if (folder.path / SUMMARY).exists():
                earlier = read_run(folder.path)
                self._backend, self._seconds_before = earlier.backend, earlier.seconds

    def results(self) -> Results:
        left = [case for case in self._cases if str(case.id) not in self._outcomes]
        interrupted, start_error, internal = False, "", ""
        if left:
            interrupted, start_error, internal = self._run(left)
        if start_error and not self._outcomes:
            self._write("the backend could not be started", EXIT_START)
            raise BackendStartError(start_error)
        why = (
            "the run was interrupted before it"
            if interrupted
            else start_error or ("pytest ended with an error of its own" if internal else "the run ended before it")
        )
        results = self._write(why, EXIT_START if start_error else None)
        if internal:
            print(f"pytest ended with an error of its own:\n{internal}", file=sys.stderr)
        return results

    def _run(self, left: list[Case]) -> tuple[bool, str, str]:
        import pytest

        from .pytest_plugin import Recorder

        ordered = sorted(left, key=lambda case: -case.cost)
        self._folder.assign(self._task, ordered, self._required(left))
        workers = min(self._request.workers, len(left))
        with Progress(len(self._cases), self._outcomes, sum(case.cost for case in left)) as progress:
            costs = {str(case.id): case.cost for case in left}

            def record(outcome: Outcome) -> None:
                self._outcomes[outcome.id] = outcome
                self._folder.append(outcome)
                bad = self._judge(recorder.backend).judge(outcome).verdict in BAD
                progress.advance(outcome, costs.get(outcome.id, 0.0), bad)

            recorder = Recorder(record)
            with _quiet_environment(), _sigterm_as_interrupt():
                code = pytest.main(_arguments(self._folder.path, workers), plugins=[recorder])
        self._backend = recorder.backend or self._backend
        interrupted = code == pytest.ExitCode.INTERRUPTED and not recorder.start_error
        return interrupted, recorder.start_error, recorder.internal_error

    def _required(self, cases: Sequence[Case]) -> list[Case]:
        chosen = {str(case.id) for case in cases}
        out: dict[str, Case] = {}
        todo = [name for case in cases for name in case.requires]
        while todo:
            name = todo.pop()
            if name not in out and name not in chosen and name in self._plan.by_id:
                out[name] = self._plan.by_id[name]
                todo += out[name].requires
        return list(out.values())

    def _write(self, why: str, exit_code: int | None) -> Results:
        request = self._request
        outcomes = complete(self._cases, self._outcomes, why)
        judge = self._judge(self._backend)
        judgements = judge.judge_all(outcomes, self._plan.by_id)
        finished = all(outcome.kind is not Kind.NOT_RUN for outcome in outcomes.values())
        # A partial plan knows too few ids to call an entry dead.
        problems = tuple(judge.problems(self._plan.by_id, self._request.selection.families))
        total, families = count(outcomes)
        covered, planned = judge.covered_samples(outcomes)
        verdicts: dict[str, int] = {}
        for judgement in judgements.values():
            verdicts[judgement.verdict.value] = verdicts.get(judgement.verdict.value, 0) + 1
        bad = any(judgement.verdict in BAD for judgement in judgements.values())
        if exit_code is None:
            exit_code = EXIT_FINDINGS if bad or problems or not finished else EXIT_EXPECTED
        run = Run(
            run_id=self._task.run_id,
            command=request.command,
            spec=request.spec,
            backend=self._backend,
            profile=request.selection.profile,
            seed=request.seed,
            faults=request.faults,
            began=self._task.began,
            seconds=round(self._seconds_before + time.monotonic() - self._start, 3),
            finished=finished,
            not_run_because="" if finished else why,
            planned=len(self._cases),
            counts=total,
            families=families,
            verdicts={verdict.value: verdicts[verdict.value] for verdict in Verdict if verdict.value in verdicts},
            deviations=_deviations(outcomes, judgements),
            problems=problems,
            samples_planned=planned,
            samples_expected=covered,
            digests=self._digests(),
            platform=f"{platform.system()} {platform.release()} {platform.machine()}",
            exit_code=exit_code,
        )
        self._folder.replace(SUMMARY, write_text(run))
        self._folder.replace(JUNIT, junit(run, self._cases, outcomes))
        return Results(self._folder.path, run, tuple(self._cases), outcomes)

    def _judge(self, backend: Backend | None) -> Judge:
        return Judge(
            self._entries,
            torch=backend.torch if backend else "",
            device=backend.device_name if backend else "",
            profile=self._request.selection.profile,
        )

    def _digests(self) -> dict[str, str]:
        file = Path(self._request.spec.expectations) if self._request.spec.expectations else None
        return {
            "suite": digest.of_suite(),
            "plan": self._plan.key,
            "cases": digest.of_texts(str(case.id) for case in self._cases),
            "expectations": digest.of_texts([file.read_text(encoding="utf-8")]) if file and file.exists() else "",
            "overlay": digest.of_overlays(self._request.spec.path),
        }


def _deviations(outcomes: dict[str, Outcome], judgements: dict[str, Judgement]) -> dict[str, Judgement]:
    plain = Judgement(Verdict.AS_EXPECTED)
    return {
        name: judgement
        for name, judgement in judgements.items()
        if outcomes[name].kind is not Kind.PASS or judgement != plain
    }


def _arguments(folder: Path, workers: int) -> list[str]:
    """Arguments of pytest: nothing of the user's own pytest configuration may change a verdict."""
    out = ["-p", "torch_conformance.pytest_plugin", f"--conformance-run={folder.absolute()}"]
    out += ["-c", os.devnull, f"--rootdir={folder.absolute()}", "--noconftest"]
    for plugin in (
        "terminal",
        "cacheprovider",
        "junitxml",
        "logging",
        "faulthandler",
        "doctest",
        "unittest",
        "pastebin",
    ):
        out += ["-p", f"no:{plugin}"]
    if workers:
        # Few cases at a time: the order is by cost, and a long queue on one worker would leave the other idle.
        out += ["-p", "xdist.plugin", "-n", str(workers), "--dist=load", "--maxschedchunk=8"]
    return out


class _quiet_environment:
    """Without the variables by which a user's environment adds options or plugins to pytest."""

    def __enter__(self) -> None:
        self._saved = {name: os.environ.pop(name, None) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")}
        self._saved["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

    def __exit__(self, *_: object) -> None:
        for name, value in self._saved.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


class _sigterm_as_interrupt:
    """A run that is asked to end keeps its results, as with Ctrl-C."""

    def __enter__(self) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        self._before = signal.signal(signal.SIGTERM, interrupt)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._before)
