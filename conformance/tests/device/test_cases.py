"""Cases end to end: an oracle and a device process on the CPU."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from torch_conformance.case import Case
from torch_conformance.codec import from_json
from torch_conformance.outcome import Kind

from .conftest import CPU, Launcher, Role, run_case


def cases_of(role: Role, families: list[str] | None) -> list[Case]:
    answer: dict[str, Any] = role.ask({"list": {"families": families}})[0]
    return [from_json(Case, item) for item in answer["cases"]]


def test_every_clause_passes_on_the_cpu_or_is_refused_for_what_the_cpu_does_not_claim(cpu: Role) -> None:
    cases = [case for case in cases_of(cpu, None) if not case.sampled]
    quick = [case for case in cases if case.cost < 1]
    outcomes = [cpu.clause(case) for case in quick]
    wrong = [(outcome.id, outcome.message) for outcome in outcomes if outcome.kind not in (Kind.PASS, Kind.REFUSED)]
    assert wrong == []
    assert sum(outcome.kind is Kind.PASS for outcome in outcomes) >= 40
    assert [outcome.id for outcome in outcomes if outcome.observation.state_changed] == []


def test_the_operator_family_lists_forward_dtypes_and_float32_backward(cpu: Role) -> None:
    cases = {str(case.id): case for case in cases_of(cpu, ["op"])}
    assert len(cases) > 6000
    assert cases["op/add/forward/float32/-"].profile == "smoke"
    assert cases["op/add/forward/int64/-"].profile == "core"
    assert cases["op/add/backward/float32/-"].sampled
    assert "op/add/backward/float64/-" not in cases


def test_the_slowest_case_is_planned_first(cpu: Role) -> None:
    assert str(cases_of(cpu, ["op"])[0].id) == "op/grid_sampler_3d/forward/float16/-"


def test_claimed_dtypes_restrict_the_cases(launcher: Launcher) -> None:
    role = launcher.device(dataclasses.replace(CPU, dtypes=("float32", "int64")))
    assert {case.id.dtype for case in cases_of(role, ["op"])} == {"float32", "int64"}


def test_an_unknown_family_is_an_error(cpu: Role) -> None:
    assert "nonsense" in cpu.ask({"list": {"families": ["nonsense"]}})[0]["error"]["message"]


@pytest.mark.parametrize(
    "identifier",
    [
        "op/add/forward/float32/-",
        "op/mul/forward/complex64/-",
        "op/to/forward/float32/-",
        "op/tensor_split/forward/int64/-",
        "op/arange/forward/int64/-",
        "op/linalg.svd/backward/float32/-",
        "op/nn.functional.conv2d/backward/float32/-",
        "op/sgn/backward/float32/-",
        "op/empty_like/forward/float32/-",
        "op/randn_like/forward/float16/-",
        "op/nn.functional.dropout/backward/float32/-",
        "op/normal.number_mean/backward/float32/-",
        "op/sparse.mm.reduce/forward/float32/-",
        "op/nonzero/forward/bool/-",
        "op/zero_/forward/float32/-",
    ],
)
def test_an_operator_passes_on_the_cpu(oracle: Role, cpu: Role, identifier: str) -> None:
    ran = run_case(oracle, cpu, identifier)
    assert ran.failed == []
    assert ran.run == ran.planned == len(ran.digests) > 0


def test_profiles_take_one_eight_and_all_samples(oracle: Role, cpu: Role) -> None:
    counts = [run_case(oracle, cpu, "op/sum/forward/float32/-", profile).run for profile in ("smoke", "core", "full")]
    assert counts[:2] == [1, 8]
    assert counts[2] > 8


def test_capped_samples_are_spread_over_all(oracle: Role, cpu: Role) -> None:
    every = run_case(oracle, cpu, "op/sum/forward/float32/-", "full").indices
    capped = run_case(oracle, cpu, "op/sum/forward/float32/-", "core").indices
    assert (capped[0], capped[-1]) == (every[0], every[-1])


def test_samples_are_the_same_in_every_process_and_follow_the_seed(launcher: Launcher, oracle: Role, cpu: Role) -> None:
    identifier = "op/softmax/forward/float32/-"
    first = run_case(oracle, cpu, identifier)
    again = run_case(launcher.fork("oracle"), cpu, identifier)
    other = run_case(oracle, cpu, identifier, seed=1)
    assert first.digests == again.digests
    assert first.digests != other.digests


def test_only_the_wanted_samples_are_made(oracle: Role) -> None:
    case = {"id": "op/sum/forward/float32/-", "sampled": True}
    oracle.ask({"open": case, "seed": 0, "profile": "full", "only": [3, 5]})
    assert oracle.ask({"next": True})[0]["indices"] == [3, 5]
    assert oracle.ask({"close": True})[0]["planned"] == 2


def test_an_unknown_operator_is_an_error_and_the_oracle_goes_on(oracle: Role, cpu: Role) -> None:
    case = {"id": "op/no_such/forward/float32/-", "sampled": True}
    assert "error" in oracle.ask({"open": case, "seed": 0, "profile": "core", "only": None})[0]
    assert run_case(oracle, cpu, "op/neg/forward/float32/-").failed == []


def test_a_clause_that_does_not_exist_is_the_suites_own_fault(cpu: Role) -> None:
    case = from_json(Case, {"id": "registration/no/such/-/-"})
    assert cpu.clause(case).kind is Kind.ORACLE_BROKEN


def test_the_probe_answers_for_every_capability(cpu: Role) -> None:
    found = cpu.ask({"probe": True})[0]["probe"]["capabilities"]
    assert found["streams"] is False
    assert found["autocast"] is True
