"""A session blames exactly one case or sample, survives, and leaves nothing behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from torch_conformance.backend import BackendSpec
from torch_conformance.case import Case
from torch_conformance.errors import BackendStartError, UsageError
from torch_conformance.outcome import Kind
from torch_conformance.session import Session, run_cases

Cases = dict[str, Case]


def test_a_clause_that_segfaults_is_crashed_with_its_signal_and_last_words(
    fake_session: Session, fake_cases: Cases
) -> None:
    outcome = fake_session.run(fake_cases["segfault"])
    assert outcome.kind is Kind.CRASHED
    assert outcome.observation.exit == "signal SIGSEGV"
    assert "about to touch address 16" in outcome.message


def test_a_clause_that_leaves_silently_is_crashed_with_its_exit_code(fake_session: Session, fake_cases: Cases) -> None:
    outcome = fake_session.run(fake_cases["leave"])
    assert (outcome.kind, outcome.observation.exit) == (Kind.CRASHED, "exit 0")


def test_a_clause_that_hangs_is_timed_out_with_the_stack_it_hung_in(fake_session: Session, fake_cases: Cases) -> None:
    begin = time.monotonic()
    outcome = fake_session.run(fake_cases["hang"])
    assert outcome.kind is Kind.TIMED_OUT
    assert "in clause" in outcome.observation.stack
    assert "did not finish within 0.5 s" in outcome.message
    assert time.monotonic() - begin < 10


def test_the_case_after_a_death_runs_in_a_new_process(fake_session: Session, fake_cases: Cases) -> None:
    fake_session.run(fake_cases["segfault"])
    assert fake_session.run(fake_cases["pass"]).kind is Kind.PASS


def test_a_flood_on_stdout_neither_blocks_nor_is_kept(fake_session: Session, fake_cases: Cases) -> None:
    outcome = fake_session.run(fake_cases["flood"])
    assert outcome.kind is Kind.PASS
    assert outcome.observation.output_tail == ""


def test_a_process_that_left_state_changed_is_replaced(fake_session: Session, fake_cases: Cases) -> None:
    before = fake_session.run(fake_cases["pid"]).message
    assert fake_session.run(fake_cases["pid"]).message == before
    fake_session.run(fake_cases["litter"])
    assert fake_session.run(fake_cases["pid"]).message != before


def test_a_crash_at_one_sample_blames_that_sample_and_judges_all_others(
    fake_session: Session, fake_cases: Cases
) -> None:
    outcome = fake_session.run(fake_cases["crash-at-2"])
    assert outcome.kind is Kind.CRASHED
    assert [(item.index, item.digest, item.kind) for item in outcome.samples.failed] == [(2, "d2", Kind.CRASHED)]
    assert (outcome.samples.planned, outcome.samples.run, outcome.observation.bitwise_equal) == (5, 5, 4)


def test_an_exit_at_the_first_sample_blames_the_first_sample(fake_session: Session, fake_cases: Cases) -> None:
    outcome = fake_session.run(fake_cases["exit-at-0"])
    assert [item.index for item in outcome.samples.failed] == [0]
    assert "exit 3" in outcome.message


def test_a_hang_at_the_last_sample_keeps_the_results_of_the_others(fake_session: Session, fake_cases: Cases) -> None:
    outcome = fake_session.run(fake_cases["hang-at-4"])
    assert outcome.kind is Kind.TIMED_OUT
    assert [item.index for item in outcome.samples.failed] == [4]
    assert outcome.samples.passed == 4


def test_a_mismatch_at_one_sample_names_it(fake_session: Session, fake_cases: Cases) -> None:
    outcome = fake_session.run(fake_cases["mismatch-at-3"])
    assert outcome.kind is Kind.MISMATCH
    assert outcome.message == "sample 3: got 1, wanted 2"


def test_after_the_third_death_in_a_case_the_rest_of_its_samples_is_not_run(
    fake_session: Session, fake_cases: Cases
) -> None:
    outcome = fake_session.run(fake_cases["crash-from-1"])
    assert outcome.kind is Kind.CRASHED
    assert [item.index for item in outcome.samples.failed] == [1, 2, 3]
    assert (outcome.samples.planned, outcome.samples.run) == (5, 3)
    assert "2 samples were not run" in outcome.message


def test_an_oracle_that_dies_is_the_suites_fault_and_the_next_case_has_a_new_one(
    fake_session: Session, fake_cases: Cases
) -> None:
    outcome = fake_session.run(fake_cases["oracle-dies"])
    assert outcome.kind is Kind.ORACLE_BROKEN
    assert "exit 9" in outcome.message
    assert fake_session.run(fake_cases["samples-pass"]).kind is Kind.PASS


def test_a_case_without_any_sample_does_not_pass(fake_session: Session, fake_cases: Cases) -> None:
    assert fake_session.run(fake_cases["none"]).kind is Kind.ORACLE_BROKEN


def test_a_case_is_blocked_by_the_root_that_did_not_pass(fake_session: Session, fake_cases: Cases) -> None:
    outcome = fake_session.run(fake_cases["needs-blocked"])
    assert outcome.kind is Kind.BLOCKED
    assert outcome.blocked_by == "fake/segfault/behaves/-/-"
    assert outcome.samples.run == 0


def test_a_case_whose_prerequisite_passes_runs(fake_session: Session, fake_cases: Cases) -> None:
    assert fake_session.run(fake_cases["needs-pass"]).kind is Kind.PASS


def test_a_case_for_more_devices_than_the_backend_has_is_refused(fake_session: Session, fake_cases: Cases) -> None:
    assert fake_session.run(fake_cases["needs-two-devices"]).kind is Kind.REFUSED


def test_closing_a_session_leaves_no_process(fake_spec: BackendSpec, fake_cases: Cases) -> None:
    others = set(_children())  # fixtures of other modules may keep processes in this worker
    with Session(fake_spec) as session:
        session.run(fake_cases["samples-pass"])
        pids = set(_children()) - others
        assert pids
    end = time.monotonic() + 10  # a process that was killed goes away when it is next scheduled
    while any(_alive(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.02)
    assert not [pid for pid in pids if _alive(pid)]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_backend_that_refuses_to_start_says_why(
    fake_processes: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    monkeypatch.setenv("FAKE_START", "fails")
    with pytest.raises(BackendStartError, match="the chip is on fire; put it out"):
        _start(start)


def test_a_backend_that_dies_at_its_start_is_quoted(fake_processes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_START", "dies")
    with pytest.raises(BackendStartError, match=r"went away \(exit 7\): no firmware"):
        _start("fork")


def test_a_torch_that_is_too_old_is_named_with_what_is_wanted(
    fake_processes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TORCH", "2.12.1")
    with pytest.raises(BackendStartError, match=r"got torch 2\.12\.1 .* wanted 2\.13 or later"):
        _start("fork")


def test_a_torch_that_cannot_be_imported_is_named(fake_processes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TORCH", "broken")
    with pytest.raises(BackendStartError, match=r"libtorch_cpu\.so: no such file"):
        _start("spawn")


def test_spawned_roles_answer_as_forked_ones_do(fake_spec: BackendSpec, fake_cases: Cases) -> None:
    spec = BackendSpec(name="fake", device="fake", start="spawn")
    with Session(spec) as session:
        assert session.run(fake_cases["samples-pass"]).kind is Kind.PASS
        assert session.run(fake_cases["segfault"]).observation.exit == "signal SIGSEGV"
        assert session.run(fake_cases["pass"]).kind is Kind.PASS


def test_run_cases_returns_the_outcome_of_each_matching_case(fake_processes: Path, fake_spec: BackendSpec) -> None:
    outcomes = run_cases(fake_spec, ["fake/pass/**", "fake/mismatch/**"])
    assert {name.split("/")[1]: item.kind for name, item in outcomes.items()} == {
        "pass": Kind.PASS,
        "mismatch": Kind.MISMATCH,
    }


def test_run_cases_names_the_nearest_id_when_nothing_matches(fake_processes: Path, fake_spec: BackendSpec) -> None:
    with pytest.raises(UsageError, match="the nearest id is 'fake/segfault/behaves/-/-'"):
        run_cases(fake_spec, ["fake/segfalt/behaves/-/-"])


def _start(start: str) -> None:
    with Session(BackendSpec(name="fake", device="fake", start=start)) as session:
        session.start()


def _children() -> set[int]:
    """All processes below this one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found - {os.getpid()}
        found |= more


def _alive(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
