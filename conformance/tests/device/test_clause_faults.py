"""Every clause of the device contract notices the seeded fault that it names, on the reference device."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import torch_conformance
from torch_conformance.backend import BackendSpec
from torch_conformance.case import Case
from torch_conformance.codec import from_json, to_json
from torch_conformance.discovery import find_backend
from torch_conformance.outcome import Kind, Outcome
from torch_conformance.running import expectations_of

from .conftest import Launcher

CHAPTERS = sorted(
    path.stem
    for path in (Path(torch_conformance.__file__).parent / "device" / "clauses").glob("*.py")
    if path.stem != "__init__"
)


@pytest.fixture(scope="module")
def reference() -> BackendSpec:
    return find_backend("neuron_ref")


def kind_of(launcher: Launcher, spec: BackendSpec, case: Case, faults: str) -> Kind:
    role = launcher.device(spec, faults)
    role.sock.settimeout(30)
    try:
        answer = role.ask({"clause": to_json(case), "seed": 0})[0]
        return from_json(Outcome, answer["outcome"]).kind if "outcome" in answer else Kind.ORACLE_BROKEN
    except (EOFError, ConnectionError):
        return Kind.CRASHED
    except TimeoutError:
        os.killpg(role.pid, signal.SIGKILL)
        return Kind.TIMED_OUT
    finally:
        role.close()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_clause_of_a_chapter_notices_its_fault(launcher: Launcher, reference: BackendSpec, chapter: str) -> None:
    from torch_conformance.device.clause import load_clauses

    expected = expectations_of(reference)
    missed = {}
    checked = 0
    for name, clause in load_clauses().items():
        if not clause.check.__module__.endswith(f".{chapter}"):
            continue
        # What fails on a plain torch is shown to notice its fault on a patched one, in tools/tests/test_patch_cases.py.
        if any(entry.covers_case(name) for entry in expected):
            continue
        checked += 1
        if kind_of(launcher, reference, clause.case, "") is not Kind.PASS:
            missed[name] = "does not pass without a fault"
        elif (kind := kind_of(launcher, reference, clause.case, clause.fault)) in (Kind.PASS, Kind.ORACLE_BROKEN):
            missed[name] = f"{kind.value} under {clause.fault}"
    assert not missed, f"{len(missed)} of {checked} clauses: {missed}"
