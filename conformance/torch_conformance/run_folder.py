"""A run folder: outcomes appended as they come, the rest replaced atomically, one run at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from . import codec
from .backend import BackendSpec
from .case import Case
from .errors import UsageError
from .outcome import Outcome
from .plan import read_selection, save_selection

RUNS = Path("runs")
RUN_LINES = "run.jsonl"
SUMMARY = "summary.json"
JUNIT = "junit.xml"
CASES = "cases.json"
WORK = "work"
LOCK = ".lock"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Task:
    """How a worker runs its cases.

    Attributes:
        spec: the backend.
        profile: the suite profile.
        seed: of all samples and clauses.
        faults: names of faults to switch on.
        expectations: absolute path of the expectation file, or empty.
        rerun: the command that runs one case again, but for the case.
        run_id: names the run in all its files.
        began: when, UTC, ISO.
        digests: of suite and plan, which a run that goes on must share.
    """

    spec: BackendSpec
    profile: str
    seed: int
    faults: tuple[str, ...] = ()
    expectations: str = ""
    rerun: str = ""
    run_id: str = ""
    began: str = ""
    digests: dict[str, str] = field(default_factory=dict)


class RunFolder:
    """The folder of one run, locked while this object is open."""

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        """Create or open the folder and lock it.

        Args:
            path: the folder.
            resume: go on with the run that it holds, if it holds one.

        Raises:
            UsageError: when it cannot be written, is in use, or holds a run that is not to be resumed.
        """
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = (path / LOCK).open("a+", encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"cannot write the run folder {path.absolute()}: {error.strerror or error}. Name another with --out."
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.seek(0)
            owner = self._lock.read().strip()
            self._lock.close()
            raise UsageError(
                f"the run folder {path.absolute()} is in use{f' by process {owner}' if owner else ''}. Wait for that "
                "run, or name another folder with --out."
            ) from error
        self._lines: IO[str] | None = None
        try:
            self._lock.truncate(0)
            self._lock.write(str(os.getpid()))
            self._lock.flush()
            if not resume and any((path / name).exists() for name in (RUN_LINES, SUMMARY)):
                raise UsageError(
                    f"the run folder {path.absolute()} already holds a run. Go on with it by --resume, or name another "
                    "folder with --out."
                )
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the folder free; one in which nothing was planned is removed again."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None
        if not self._lock.closed:
            with contextlib.suppress(OSError):
                self._lock.truncate(0)
                if [entry.name for entry in self.path.iterdir()] == [LOCK]:
                    (self.path / LOCK).unlink()
                    self.path.rmdir()
            self._lock.close()

    def plan(self, cases: Sequence[Case]) -> None:
        """Say which cases the run has, in plan order."""
        save_selection(cases, self.path / CASES)

    def assign(self, task: Task, cases: Sequence[Case], required: Sequence[Case]) -> None:
        """Write what the workers need.

        Args:
            task: how to run the cases.
            cases: the cases that are still to be run, in the order in which to run them.
            required: cases that must pass before some of them.
        """
        work = self.path / WORK
        work.mkdir(exist_ok=True)
        save_selection(cases, work / "order.json")
        save_selection(required, work / "required.json")
        replace_file(work / "task.json", codec.dumps(task))

    def append(self, outcome: Outcome) -> None:
        """Add one outcome; it is in the file when this returns."""
        if self._lines is None:
            mend(self.path / RUN_LINES)
            self._lines = (self.path / RUN_LINES).open("a", encoding="utf-8")
        self._lines.write(line_of(outcome) + "\n")
        self._lines.flush()

    def replace(self, name: str, text: str) -> None:
        """Write a file so that a reader sees the old or the new one, never a part."""
        replace_file(self.path / name, text)


def read_task(path: Path) -> tuple[Task, list[Case], list[Case]]:
    """What `RunFolder.assign` wrote: the task, the cases in order, and those that are required."""
    work = path / WORK
    task = codec.loads(Task, (work / "task.json").read_text(encoding="utf-8"))
    return task, read_selection(work / "order.json"), read_selection(work / "required.json")


def line_of(outcome: Outcome) -> str:
    """An outcome as a line of ``run.jsonl``."""
    return json.dumps({"family": outcome.id.partition("/")[0], **codec.to_json(outcome)}, ensure_ascii=False)


def read_outcomes(path: Path) -> dict[str, Outcome]:
    """The outcomes of a run folder by id; the last one of an id counts, and a torn last line is as if never written."""
    file = path / RUN_LINES
    if not file.exists():
        return {}
    out: dict[str, Outcome] = {}
    lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            data.pop("family", None)
            outcome = codec.from_json(Outcome, data)
        except (ValueError, AttributeError) as error:
            if number >= len(lines) - 1:
                break
            raise UsageError(f"{file}:{number}: not an outcome: {error}") from error
        out[outcome.id] = outcome
    return out


def read_cases(path: Path) -> list[Case]:
    """The cases that a run folder was planned with.

    Raises:
        UsageError: when there is no such file or it is not one.
    """
    try:
        return read_selection(path / CASES)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} holds no run: {CASES} cannot be read ({error})") from error


def mend(file: Path) -> None:
    """Cut off a torn last line, so that the next one does not continue it."""
    with contextlib.suppress(FileNotFoundError), file.open("rb+") as lines:
        content = lines.read()
        if content and not content.endswith(b"\n"):
            lines.truncate(content.rfind(b"\n") + 1)


def replace_file(file: Path, text: str) -> None:
    """Replace a file atomically."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, suffix=".part", delete=False) as part:
        part.write(text)
    Path(part.name).chmod(0o644)
    Path(part.name).replace(file)


def default_path(backend: str, profile: str) -> Path:
    """``runs/<time>-<backend>-<profile>``, with a number behind it when two runs begin in one second."""
    base = f"{time.strftime('%Y%m%d-%H%M%S')}-{backend}-{profile}"
    path = RUNS / base
    number = 1
    while path.exists():
        number += 1
        path = RUNS / f"{base}-{number}"
    return path


def runs_newest_first(root: Path = RUNS) -> Iterator[Path]:
    """The run folders below ``root``, by the time at which they were last written."""
    try:
        found = [path for path in root.iterdir() if (path / CASES).is_file()]
    except OSError:
        return
    yield from sorted(found, key=_last_written, reverse=True)


def find_run(name: str | None) -> Path:
    """The run folder that ``name`` names: a path, a name below ``runs/``, or the newest when there is none.

    Raises:
        UsageError: when there is no such run.
    """
    if name is None:
        newest = next(runs_newest_first(), None)
        if newest is None:
            raise UsageError(
                f"there is no run below {RUNS.absolute()}; `torch-conformance run` makes one, or name a folder"
            )
        return newest
    for path in (Path(name), RUNS / name):
        if (path / CASES).is_file():
            return path
    raise UsageError(f"{name!r} is no run folder: there is no {CASES} in it; a run is made by `torch-conformance run`")


def _last_written(path: Path) -> tuple[float, str]:
    newest = max((path / name).stat().st_mtime for name in (CASES, RUN_LINES, SUMMARY) if (path / name).exists())
    return newest, path.name
