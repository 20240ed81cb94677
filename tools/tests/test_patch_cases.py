"""The cases that prove patches, with every patch applied: each still notices the seeded fault that it names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch_conformance.backend import BackendSpec
from torch_conformance.case import Case
from torch_conformance.device.clause import load_clauses
from torch_conformance.discovery import find_backend
from torch_conformance.plan import load_plan
from torch_conformance.session import Session
from uncuda.overlay import make_overlay
from uncuda.series import load_series
from uncuda.tree import installed_tree

SERIES = load_series(Path(__file__).parents[2] / "patches")
CASES = [case for patch in SERIES.patches for case in patch.cases]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BackendSpec, dict[str, Case]]]:
    overlay = make_overlay(SERIES, installed_tree(), tmp_path_factory.mktemp("patched") / "overlay")
    spec = dataclasses.replace(find_backend("neuron_ref"), path=(str(overlay.folder),))
    families = sorted({case.partition("/")[0] for case in CASES})
    yield spec, load_plan(spec, families=families).by_id


@pytest.mark.parametrize("case", CASES)
def test_a_case_that_a_patch_cures_fails_under_its_fault(
    case: str, patched: tuple[BackendSpec, dict[str, Case]]
) -> None:
    spec, plan = patched
    fault = load_clauses()[case].fault
    with Session(spec, profile="core", cases=plan, faults=(fault,)) as session:
        outcome = session.run(plan[case])
    assert outcome.kind.value in ("MISMATCH", "RAISED", "CRASHED"), f"{case} passes under {fault}"
