"""The pytest plugin: each item is one case, each worker owns one session.

Loaded by ``-p torch_conformance.pytest_plugin`` and never through an entry point: installing the suite changes no one's
pytest. `torch-conformance run` prepares a run folder and calls pytest with ``--conformance-run FOLDER``; hooks here
only adapt pytest to `Session` and `Recorder`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from . import codec
from .backend import Backend
from .case import Case
from .errors import BackendStartError
from .expectation import read_expectations
from .judge import Judge, Verdict
from .outcome import Kind, Outcome, Samples
from .run_folder import Task, read_task
from .session import Session

OUTCOME = "torch_conformance.outcome"
BACKEND = "torch_conformance.backend"
START_ERROR = "torch_conformance_start_error"


class Recorder:
    """Where outcomes go in the controlling process; `torch-conformance run` passes one as a plugin object.

    Attributes:
        backend: as the first session described it.
        start_error: why a session could not start the backend, or empty.
        internal_error: what pytest or xdist failed with, or empty.
    """

    def __init__(self, record: Callable[[Outcome], None]) -> None:
        """Pass every outcome to ``record`` as it arrives."""
        self._record = record
        self.backend: Backend | None = None
        self.start_error = ""
        self.internal_error = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = dict(report.user_properties)
        if BACKEND in found and self.backend is None:
            self.backend = codec.loads(Backend, str(found[BACKEND]))
        if OUTCOME in found:
            self._record(codec.loads(Outcome, str(found[OUTCOME])))
        elif report.failed:
            # The worker itself died: never the backend's fault, which lives in other processes.
            message = f"the pytest worker died while it ran this case: {report.longrepr}"
            self._record(Outcome(report.nodeid, Kind.ORACLE_BROKEN, message=message, samples=Samples(run=0)))

    def pytest_internalerror(self, excrepr: object) -> bool:
        self.internal_error = self.internal_error or str(excrepr)
        return True  # it is printed once, with the results

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        output = getattr(node, "workeroutput", None) or {}
        self.start_error = self.start_error or str(output.get(START_ERROR, ""))


class CaseItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case

    def runtest(self) -> None:
        raise RuntimeError("a case is run by the plugin's protocol hook, which owns the session")

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


class _Worker:
    """Runs the items of one process through one session."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self._task: Task | None = None
        self._session: Session | None = None
        self._judge: Judge | None = None
        self._extra: list[tuple[str, object]] = []

    def pytest_collection(self, session: pytest.Session) -> bool:
        task, cases, required = read_task(self._folder)
        self._task = task
        session.items = [
            CaseItem.from_parent(session, name=str(case.id), nodeid=str(case.id), case=case) for case in cases
        ]
        session.testscollected = len(session.items)
        self._session = Session(
            task.spec,
            profile=task.profile,
            seed=task.seed,
            faults=task.faults,
            cases={str(case.id): case for case in (*cases, *required)},
            op_db=any(case.sampled for case in cases),
        )
        self._config.hook.pytest_collection_finish(session=session)
        return True

    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if not isinstance(item, CaseItem) or self._session is None or self._task is None:
            return None
        begin = time.time()
        try:
            if self._judge is None:
                self._begin(self._session.start(), self._task)
            outcome = self._session.run(item.case)
        except BackendStartError as error:
            self._cannot_start(item, str(error))
            return True
        self._report(item, outcome, begin)
        return True

    def pytest_sessionfinish(self) -> None:
        if self._session is not None:
            self._session.close()

    def _begin(self, backend: Backend, task: Task) -> None:
        self._extra = [(BACKEND, codec.dumps(backend))]
        entries = read_expectations(Path(task.expectations)) if task.expectations else ()
        self._judge = Judge(entries, torch=backend.torch, device=backend.device_name, profile=task.profile)

    def _cannot_start(self, item: pytest.Item, text: str) -> None:
        item.session.shouldstop = "the backend could not be started"
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[START_ERROR] = text
            return
        for plugin in self._config.pluginmanager.get_plugins():
            if isinstance(plugin, Recorder):
                plugin.start_error = text

    def _report(self, item: CaseItem, outcome: Outcome, begin: float) -> None:
        assert self._judge is not None and self._task is not None
        status: Literal["passed", "failed", "skipped"] = "passed"
        text: str | tuple[str, int, str] | None = None
        if outcome.kind in (Kind.BLOCKED, Kind.REFUSED, Kind.NOT_RUN):
            status, text = "skipped", (str(self._folder), 0, f"{outcome.kind.value}: {outcome.message}")
        elif self._judge.judge(outcome).verdict is Verdict.REGRESSION:
            status, text = "failed", failure_text(outcome, self._task.rerun)
        properties = [(OUTCOME, codec.dumps(outcome)), *self._extra]
        self._extra = []
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=(str(self._folder), None, item.name),
            keywords={},
            outcome=status,
            longrepr=text,
            when="call",
            user_properties=properties,
            duration=outcome.seconds,
            start=begin,
            stop=begin + outcome.seconds,
        )
        # One report a case: setup and teardown belong to the session, and each report costs as much as a small case.
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=report.location)
        hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=report.location)


def failure_text(outcome: Outcome, rerun: str) -> str:
    """Got and wanted, and the command that runs exactly this case again."""
    return f"{outcome.kind.value}: {outcome.message}\nrun it again: {rerun} --case '{outcome.id}'"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("torch-conformance").addoption(
        "--conformance-run", metavar="FOLDER", help="run folder that `torch-conformance run` prepared"
    )


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--conformance-run")
    if folder:
        config.pluginmanager.register(_Worker(config, Path(folder)), "torch_conformance_worker")
