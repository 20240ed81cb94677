"""Fixtures of the suite's own tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from torch_conformance import process
from torch_conformance.backend import BackendSpec
from torch_conformance.case import Case
from torch_conformance.session import Session

FAKE = Path(__file__).with_name("fake_bootstrap.py")


@pytest.fixture
def fake_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let the processes beside torch be fakes, with a plan cache and a working folder of their own."""
    monkeypatch.setattr(process, "BOOTSTRAP", FAKE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def fake_spec() -> BackendSpec:
    return BackendSpec(name="fake", device="fake", timeout_s=20)


@pytest.fixture
def fake_cases(fake_processes: Path, fake_spec: BackendSpec) -> dict[str, Case]:
    """The cases that the fake device lists, by subject."""
    with Session(fake_spec) as session:
        return {case.id.subject: case for case in session.list_cases()}


@pytest.fixture
def fake_session(fake_spec: BackendSpec, fake_cases: dict[str, Case]) -> Iterator[Session]:
    with Session(fake_spec, cases={str(case.id): case for case in fake_cases.values()}) as session:
        yield session
