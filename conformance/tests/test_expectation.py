"""Facts meet expectations: what is covered, what is not, and what is wrong with the file itself."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from expecttest import assert_expected_inline
from torch_conformance.backend import BackendSpec
from torch_conformance.case import Case, CaseId
from torch_conformance.errors import UsageError
from torch_conformance.expectation import PLACEHOLDER, Condition, Expectation, read_expectations
from torch_conformance.expectation_update import updated
from torch_conformance.judge import Judge, Verdict
from torch_conformance.outcome import FailedSample, Kind, Outcome, Samples
from torch_conformance.run_record import Results, Run

TODAY = datetime.date(2027, 1, 15)
ADD = "op/add/forward/float32/-"
MUL = "op/mul/forward/float32/-"


def entry(case: str = ADD, *kinds: Kind, **fields: object) -> Expectation:
    return Expectation(case, kinds or (Kind.MISMATCH,), "verified", **fields)


def judge(*entries: Expectation, **fields: object) -> Judge:
    return Judge(entries, today=TODAY, **fields)


def outcome(kind: Kind, name: str = ADD, failed: dict[int, Kind] | None = None, planned: int = 5) -> Outcome:
    samples = tuple(FailedSample(index, f"d{index}", what, "got 1, wanted 2") for index, what in (failed or {}).items())
    return Outcome(name, kind, message="got 1, wanted 2", samples=Samples(planned, planned, samples))


def case(name: str, sampled: bool = True) -> Case:
    return Case(CaseId.parse(name), sampled=sampled)


def verdict(judging: Judge, what: Outcome) -> Verdict:
    return judging.judge(what).verdict


@pytest.mark.parametrize("kind", [Kind.PASS, Kind.REFUSED])
def test_passing_and_being_refused_need_no_entry(kind: Kind) -> None:
    assert verdict(judge(), outcome(kind)) is Verdict.AS_EXPECTED


@pytest.mark.parametrize("kind", [Kind.MISMATCH, Kind.RAISED, Kind.CRASHED, Kind.TIMED_OUT, Kind.NOT_RUN])
def test_everything_else_is_a_regression_without_an_entry(kind: Kind) -> None:
    assert verdict(judge(), outcome(kind)) is Verdict.REGRESSION


@pytest.mark.parametrize("kind", [Kind.ORACLE_BROKEN, Kind.NOT_RUN])
def test_a_broken_suite_and_a_case_that_did_not_run_are_never_expected(kind: Kind) -> None:
    assert verdict(judge(entry("**", Kind.MISMATCH, Kind.RAISED)), outcome(kind)) is Verdict.REGRESSION


def test_an_entry_covers_its_kinds_only() -> None:
    judging = judge(entry(ADD, Kind.RAISED))
    assert verdict(judging, outcome(Kind.RAISED, failed={1: Kind.RAISED})) is Verdict.AS_EXPECTED
    assert verdict(judging, outcome(Kind.MISMATCH, failed={1: Kind.MISMATCH})) is Verdict.REGRESSION
    assert verdict(judging, outcome(Kind.RAISED, failed={1: Kind.RAISED, 2: Kind.MISMATCH})) is Verdict.REGRESSION


def test_one_sample_beside_those_that_are_named_is_a_regression() -> None:
    judging = judge(entry(samples=("1", "d2")))
    assert verdict(judging, outcome(Kind.MISMATCH, failed={1: Kind.MISMATCH, 2: Kind.MISMATCH})) is Verdict.AS_EXPECTED
    assert verdict(judging, outcome(Kind.MISMATCH, failed={1: Kind.MISMATCH, 3: Kind.MISMATCH})) is Verdict.REGRESSION


def test_a_clause_is_not_covered_by_an_entry_for_samples() -> None:
    assert verdict(judge(entry(samples=("0",))), outcome(Kind.MISMATCH)) is Verdict.REGRESSION


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"expires": "2027-02-01"}, Verdict.WAIVED),
        ({"expires": "2027-01-14"}, Verdict.REGRESSION),
        ({"patch": "dlpack"}, Verdict.UPSTREAM),
        ({"condition": Condition(torch=">=2.13,<2.14")}, Verdict.AS_EXPECTED),
        ({"condition": Condition(torch=">=2.14")}, Verdict.REGRESSION),
        ({"condition": Condition(device="Chip*")}, Verdict.AS_EXPECTED),
        ({"condition": Condition(device="Other*")}, Verdict.REGRESSION),
        ({"condition": Condition(profile=("smoke",))}, Verdict.REGRESSION),
    ],
)
def test_dates_conditions_and_patches_decide(fields: dict[str, object], wanted: Verdict) -> None:
    judging = judge(entry(**fields), torch="2.13.0+cpu", device="Chip 3")
    assert verdict(judging, outcome(Kind.MISMATCH, failed={1: Kind.MISMATCH})) is wanted


def test_a_flaky_case_may_pass_and_deviate() -> None:
    flaky = entry(ADD, Kind.PASS, Kind.MISMATCH)
    judging = judge(flaky)
    assert verdict(judging, outcome(Kind.MISMATCH, failed={1: Kind.MISMATCH})) is Verdict.FLAKY
    assert judging.stale({ADD: outcome(Kind.PASS)}, {ADD: case(ADD)}) == []


def test_a_blocked_case_has_the_verdict_of_what_blocks_it() -> None:
    blocked = Outcome(MUL, Kind.BLOCKED, blocked_by=ADD)
    both = {ADD: outcome(Kind.CRASHED), MUL: blocked}
    cases = {name: case(name, sampled=False) for name in both}
    assert judge().judge_all(both, cases)[MUL].verdict is Verdict.REGRESSION
    assert judge(entry(ADD, Kind.CRASHED)).judge_all(both, cases)[MUL].verdict is Verdict.AS_EXPECTED


def test_an_entry_passes_unexpectedly_only_when_all_that_it_covers_passed() -> None:
    cases = {name: case(name) for name in (ADD, MUL)}
    judging = judge(entry("op/*/forward/float32/-"))
    passed = {ADD: outcome(Kind.PASS), MUL: outcome(Kind.PASS, MUL)}
    assert {item.verdict for item in judging.judge_all(passed, cases).values()} == {Verdict.UNEXPECTED_PASS}
    assert judging.stale({ADD: passed[ADD]}, cases) == []
    assert judging.stale({**passed, MUL: outcome(Kind.MISMATCH, MUL)}, cases) == []


def test_a_profile_that_caps_samples_proves_no_entry_unnecessary_but_a_clause_is_whole() -> None:
    judging = judge(entry(), profile="core")
    assert judging.stale({ADD: outcome(Kind.PASS)}, {ADD: case(ADD)}) == []
    assert len(judging.stale({ADD: outcome(Kind.PASS)}, {ADD: case(ADD, sampled=False)})) == 1


def test_an_entry_with_a_condition_never_passes_unexpectedly() -> None:
    judging = judge(entry(condition=Condition(torch=">=2.13")), torch="2.13.0")
    assert judging.stale({ADD: outcome(Kind.PASS)}, {ADD: case(ADD)}) == []


def test_problems_name_dead_expired_reasonless_and_repeated_entries() -> None:
    entries = (
        entry("op/ad/forward/float32/-", line=3),
        entry(line=8, expires="2026-12-31"),
        Expectation(MUL, (Kind.RAISED,), PLACEHOLDER, line=13),
        Expectation(MUL, (Kind.RAISED,), "again", line=18),
    )
    text = "\n".join(f"{item.line}: {item.text}" for item in judge(*entries).problems([ADD, MUL]))
    assert_expected_inline(
        text,
        """\
3: matches no case of the plan; the nearest id is 'op/add/forward/float32/-'
8: expired on 2026-12-31: verify it again and set a new date, or remove it
13: has no reason yet: verify the deviation and say why it is there
18: repeats the entry of line 13: remove one""",
    )


def test_the_covered_share_counts_whole_cases_and_named_samples() -> None:
    outcomes = {ADD: outcome(Kind.PASS, planned=10), MUL: outcome(Kind.PASS, MUL, planned=90)}
    assert judge(entry(ADD)).covered_samples(outcomes) == (10, 100)
    assert judge(entry(MUL, samples=("1", "2"))).covered_samples(outcomes) == (2, 100)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('case = "a"\nkinds = ["RAISED"]', "known.toml:2: key 'reason' is missing"),
        ('case = "a"\nkinds = ["RAISED"]\nreason = " "', "key 'reason': got ' '"),
        ('case = "a"\nkinds = ["raised"]\nreason = "x"', r"got 'raised', .*did you mean 'RAISED'\?"),
        ('case = "a"\nkinds = ["NOT_RUN"]\nreason = "x"', "got 'NOT_RUN', wanted some of"),
        ('case = "a"\nkinds = ["PASS"]\nreason = "x"', "got PASS alone"),
        ('case = "a"\nkinds = ["RAISED"]\nreasons = "x"', r"unknown key 'reasons', .*did you mean 'reason'\?"),
        ('case = "a"\nkinds = ["RAISED"]\nreason = "x"\nexpires = "soon"', "got 'soon', wanted a date"),
        ('case = "a"\nkinds = ["RAISED"]\nreason = "x"\nsamples = []', "key 'samples': got"),
        ('case = "a"\nkinds = ["RAISED"]\nreason = "x"\ncondition = { torch = "2.x" }', "key 'condition.torch'"),
        ('case = "a"\nkinds = ["RAISED"]\nreason = "x"\ncondition = { os = "x" }', "unknown key 'os'"),
    ],
)
def test_a_broken_entry_is_named_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "known.toml"
    file.write_text(f"schema = 1\n[[expect]]\n{text}\n")
    with pytest.raises(UsageError, match=says):
        read_expectations(file)


def test_an_entry_is_read_with_all_its_keys(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text(
        'schema = 1\n\n[[expect]]\ncase = "op/**"\nkinds = ["RAISED", "MISMATCH"]\nreason = "because"\nlink = "L"\n'
        'samples = [3, "abc"]\ncondition = { torch = "<2.14", profile = "full" }\nexpires = 2027-03-31\npatch = "P"\n'
    )
    assert read_expectations(file) == (
        Expectation(
            "op/**",
            (Kind.RAISED, Kind.MISMATCH),
            "because",
            "L",
            ("3", "abc"),
            Condition("<2.14", "", ("full",)),
            "2027-03-31",
            "P",
            3,
        ),
    )


def test_update_keeps_words_and_comments_removes_what_passes_and_adds_what_fails(tmp_path: Path) -> None:
    names = [f"op/sub/forward/{dtype}/-" for dtype in ("float32", "int64")]
    file = tmp_path / "known.toml"
    file.write_text(
        "schema = 1\n\n# the chip rounds down here\n[[expect]]\n"
        f'case = "{MUL}"  # one case\nkinds = ["MISMATCH"]\nreason = "verified"\n\n'
        f'# fixed meanwhile\n[[expect]]\ncase = "{ADD}"\nkinds = ["RAISED"]\nreason = "it used to raise"\n'
    )
    outcomes = {
        ADD: outcome(Kind.PASS),
        MUL: outcome(Kind.MISMATCH, MUL, {0: Kind.MISMATCH}),
        **{name: outcome(Kind.RAISED, name, dict.fromkeys(range(5), Kind.RAISED)) for name in names},
        "op/div/forward/float32/-": outcome(Kind.MISMATCH, "op/div/forward/float32/-", {2: Kind.MISMATCH}),
    }
    results = Results(tmp_path, Run("r", (), BackendSpec("x", "x")), (), outcomes)
    change = updated(file.read_text(), read_expectations(file), results, {name: case(name) for name in outcomes})
    assert (change.added, change.removed, change.kept) == (2, 1, 1)
    assert_expected_inline(
        change.text,
        """\
schema = 1

# the chip rounds down here
[[expect]]
case = "op/mul/forward/float32/-"  # one case
kinds = ["MISMATCH"]
reason = "verified"

# got 1, wanted 2
[[expect]]
case = "op/div/forward/float32/-"
kinds = ["MISMATCH"]
samples = [2]
reason = "TODO: say why, after having verified it"

# got 1, wanted 2
[[expect]]
case = "op/sub/forward/*/-"
kinds = ["RAISED"]
reason = "TODO: say why, after having verified it"
""",
    )
    file.write_text(change.text)
    assert len(read_expectations(file)) == 3
