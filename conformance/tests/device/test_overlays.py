"""Every fault laid over the CPU's operators is noticed: the suite does not compare the CPU with itself."""

from __future__ import annotations

import pytest
from torch_conformance.case import Case, CaseId
from torch_conformance.device.overlays import OVERLAYS
from torch_conformance.outcome import Kind

from .conftest import Launcher, Role, run_case


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_is_caught_by_its_case(launcher: Launcher, oracle: Role, cpu: Role, name: str) -> None:
    identifier = OVERLAYS[name].caught_by
    faulty = launcher.device(faults=name)
    if identifier.startswith("op/"):
        assert run_case(oracle, cpu, identifier).failed == []
        failed = run_case(oracle, faulty, identifier).failed
        assert failed
        assert all(sample.kind in (Kind.MISMATCH, Kind.RAISED) for sample in failed)
    else:
        case = Case(CaseId.parse(identifier))
        assert cpu.clause(case).kind is Kind.PASS
        assert faulty.clause(case).kind in (Kind.MISMATCH, Kind.RAISED)
    faulty.close()


def test_there_are_enough_overlays_and_each_says_what_it_breaks() -> None:
    assert len(OVERLAYS) >= 24
    assert len({overlay.words for overlay in OVERLAYS.values()}) == len(OVERLAYS)


def test_a_fault_does_not_reach_the_next_process(launcher: Launcher, oracle: Role) -> None:
    launcher.device(faults="mul_off_by_ulp").close()
    assert run_case(oracle, launcher.device(), "op/mul/forward/float32/-").failed == []
