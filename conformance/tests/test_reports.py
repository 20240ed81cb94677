"""Reports show the same outcomes, and two runs are compared case by case."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from expecttest import assert_expected_inline
from torch_conformance import codec
from torch_conformance.backend import Backend, BackendSpec
from torch_conformance.case import Case, CaseId
from torch_conformance.cli import main
from torch_conformance.delta import compare
from torch_conformance.judge import Judge, Problem
from torch_conformance.outcome import FailedSample, Kind, Observation, Outcome, Samples
from torch_conformance.report.junit import junit
from torch_conformance.report.page import as_html, as_json, as_markdown
from torch_conformance.report.terminal import cause_of, console, group_by_cause, print_summary
from torch_conformance.run_folder import JUNIT, SUMMARY, RunFolder, Task, line_of
from torch_conformance.run_record import Results, Run, count, write_text

SPEC = BackendSpec(name="chip", device="chip")
BACKEND = Backend(SPEC, "2.13.0", "c" * 40, "/torch", "3.11.7", 1, "Chip 3", "b1", {"numpy": "2.4.6"})


def make(path: Path, *outcomes: Outcome, **fields: object) -> Results:
    """A finished run with these outcomes, judged without entries."""
    by_id = {outcome.id: outcome for outcome in outcomes}
    cases = tuple(Case(CaseId.parse(name), sampled=name.startswith("op/")) for name in by_id)
    judgements = Judge(()).judge_all(by_id, {str(case.id): case for case in cases})
    total, families = count(by_id)
    verdicts: dict[str, int] = {}
    for item in judgements.values():
        verdicts[item.verdict.value] = verdicts.get(item.verdict.value, 0) + 1
    run = Run(
        run_id="r1",
        command=("torch-conformance", "run"),
        spec=SPEC,
        backend=BACKEND,
        began="2027-01-15T10:00:00Z",
        seconds=12.5,
        finished=True,
        planned=len(by_id),
        counts=total,
        families=families,
        verdicts=verdicts,
        deviations={name: item for name, item in judgements.items() if by_id[name].kind is not Kind.PASS},
        exit_code=1 if "regression" in verdicts else 0,
    )
    return Results(path, dataclasses.replace(run, **fields), cases, by_id)


def save(results: Results) -> None:
    with RunFolder(results.path) as folder:
        folder.plan(results.cases)
        folder.assign(Task(SPEC, "full", 0, rerun="torch-conformance run --backend chip"), (), ())
        for outcome in results.outcomes.values():
            folder.append(outcome)
        folder.replace(SUMMARY, write_text(results.run))
        folder.replace(JUNIT, junit(results.run, results.cases, results.outcomes))


def sampled(name: str, kind: Kind, *failed: int, planned: int = 4, message: str = "got 1, wanted 2") -> Outcome:
    samples = tuple(FailedSample(index, f"d{index}", kind, message) for index in failed)
    text = f"sample {failed[0]}: {message}" if failed else ""
    return Outcome(f"op/{name}/forward/float32/-", kind, 0.5, text, Samples(planned, planned, samples))


def clause(name: str, kind: Kind, message: str = "", **fields: object) -> Outcome:
    return Outcome(f"stream/{name}/orders/-/-", kind, 0.25, message, **fields)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return make(
        tmp_path / "r",
        sampled("add", Kind.PASS),
        sampled("mul", Kind.MISMATCH, 1, 3, message="got 0x7f12 at (2, 3), wanted 2.5"),
        sampled("div", Kind.MISMATCH, 0, message="got 0x7f99 at (0, 1), wanted 4.5"),
        clause(
            "event",
            Kind.CRASHED,
            "the process went away: signal SIGSEGV <&>",
            observation=Observation(exit="x", stack="\x1b["),
        ),
        clause("pool", Kind.BLOCKED, "event", blocked_by="stream/event/orders/-/-", samples=Samples(run=0)),
        clause("graph", Kind.REFUSED, "not claimed"),
    )


def test_the_summary_shows_counts_causes_place_and_command(results: Results) -> None:
    out = io.StringIO()
    placed = dataclasses.replace(results, path=Path("runs/r"))
    print_summary(placed, console(out, width=100), "torch-conformance run --backend chip")
    text = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    assert_expected_inline(
        text,
        """\
chip, device chip x 1 (Chip 3), torch 2.13.0, profile full, 12.5 s

 family   cases   PASS   MISMATCH   REFUSED   CRASHED   BLOCKED   samples    passed
 ──────────────────────────────────────────────────────────────────────────────────
 op           3      1          2         .         .         .        12   75.00 %
 stream       3      .          .         1         1         1         3    0.00 %

 all          6      1          2         1         1         1        15   60.00 %

Regressions by cause (4 cases, 3 causes)
  MISMATCH 2x sample 1: got 0x7f12 at (2, 3), wanted 2.5
      op/mul/forward/float32/-
      op/div/forward/float32/-
  CRASHED 1x the process went away: signal SIGSEGV <&>
      stream/event/orders/-/-
  BLOCKED 1x event
      stream/pool/orders/-/-
Results: runs/r/ (summary.json, run.jsonl, junit.xml)
Look at one: torch-conformance show runs/r --case 'op/mul/forward/float32/-'
Run it again: torch-conformance run --backend chip --case 'op/mul/forward/float32/-'
Not as expected: 4 regressions""",
    )


def test_no_colour_is_written_where_nobody_looks_at_it(results: Results) -> None:
    out = io.StringIO()
    print_summary(results, console(out))
    assert "\x1b" not in out.getvalue()


def test_causes_that_differ_in_numbers_addresses_and_shapes_are_one(results: Results) -> None:
    mul, div = (results.outcomes[f"op/{name}/forward/float32/-"] for name in ("mul", "div"))
    assert cause_of(mul) == cause_of(div)
    assert [len(group.outcomes) for group in group_by_cause([mul, div])] == [2]


def test_a_share_just_below_all_is_not_shown_as_all(tmp_path: Path) -> None:
    run = make(tmp_path, sampled("add", Kind.MISMATCH, 1, planned=100_000))
    out = io.StringIO()
    print_summary(run, console(out))
    assert "99.99 %" in out.getvalue()
    assert "100 %" not in out.getvalue()


def test_junit_has_each_case_once_with_the_word_that_ci_counts(results: Results) -> None:
    root = ElementTree.fromstring(junit(results.run, results.cases, results.outcomes).encode())
    found = {
        case.get("name"): next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
        for case in root.iter("testcase")
    }
    assert found == {
        "add/forward/float32/-": "passed",
        "mul/forward/float32/-": "failure",
        "div/forward/float32/-": "failure",
        "event/orders/-/-": "error",
        "pool/orders/-/-": "skipped",
        "graph/orders/-/-": "skipped",
    }
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "2",
        "errors": "1",
        "skipped": "2",
    }


def test_the_page_needs_nothing_else_and_escapes_what_cases_said(results: Results) -> None:
    page = as_html(results)
    assert "src=" not in page and "http" not in page.replace("http-equiv", "")
    assert "SIGSEGV &lt;&amp;&gt;" in page
    for name, outcome in results.outcomes.items():
        assert (f"<code>{name.replace('/', '/<wbr>')}</code>" in page) is (outcome.kind is not Kind.PASS)


def test_json_has_every_case_with_its_verdict(results: Results) -> None:
    data = json.loads(as_json(results))
    assert {item["id"] for item in data["outcomes"]} == set(results.outcomes)
    assert data["run"]["counts"]["samples"] == {"PASS": 9, "MISMATCH": 3, "REFUSED": 1, "CRASHED": 1, "BLOCKED": 1}


def test_markdown_names_families_and_causes(results: Results) -> None:
    text = as_markdown(
        dataclasses.replace(results, run=dataclasses.replace(results.run, problems=(Problem("a", 3, "is dead"),)))
    )
    assert "| op | 3 | 1 | 2 |  |  |  | 75.00 % of 12 |" in text
    assert "- **MISMATCH** 2x `sample 1: got 0x7f12 at (2, 3), wanted 2.5`" in text
    assert "- expectation `a` (line 3) is dead" in text


def test_show_prints_one_case_in_full(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    save(results)
    assert main(["show", str(results.path), "--case", "op/mul/**"]) == 0
    shown = capsys.readouterr().out
    assert "samples       4 planned, 4 run, 2 failed" in shown
    assert "MISMATCH d3: got 0x7f12 at (2, 3), wanted 2.5" in shown
    assert "torch-conformance run --backend chip --case 'op/mul/forward/float32/-'" in shown


def test_show_filters_by_kind_and_family(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    save(results)
    main(["show", str(results.path), "--kind", "mismatch", "--kind", "crashed", "--family", "stream", "--json"])
    assert [item["id"] for item in json.loads(capsys.readouterr().out)] == ["stream/event/orders/-/-"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--kind", "CRASH"], "did you mean 'CRASHED'?"),
        (["--family", "streams"], "did you mean 'stream'?"),
        (["--case", "op/mull/forward/float32/-"], "the nearest id is 'op/mul/forward/float32/-'"),
    ],
)
def test_show_names_what_is_nearest_to_a_wrong_word(
    results: Results, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    save(results)
    assert main(["show", str(results.path), *words]) == 2
    assert says in capsys.readouterr().err


def test_a_folder_that_is_no_run_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path)]) == 2
    assert "is no run folder" in capsys.readouterr().err


def test_compare_tells_regressions_fixes_and_changes_apart(tmp_path: Path) -> None:
    before = make(
        tmp_path / "a",
        sampled("add", Kind.PASS),
        sampled("mul", Kind.MISMATCH, 1),
        sampled("div", Kind.RAISED, 1),
        sampled("sub", Kind.MISMATCH, 1),
        sampled("neg", Kind.PASS),
        sampled("old", Kind.PASS),
    )
    after = make(
        tmp_path / "b",
        sampled("add", Kind.MISMATCH, 0),
        sampled("mul", Kind.PASS),
        sampled("div", Kind.MISMATCH, 1),
        sampled("sub", Kind.MISMATCH, 1, 2),
        sampled("neg", Kind.PASS),
        sampled("new", Kind.PASS),
        backend=dataclasses.replace(BACKEND, torch="2.14.0"),
    )
    delta = compare(before, after)
    names = {
        key: [change.id.split("/")[1] for change in getattr(delta, key)]
        for key in ("regressions", "fixed", "changed", "new", "gone")
    }
    assert names == {
        "regressions": ["add", "sub"],
        "fixed": ["mul"],
        "changed": ["div"],
        "new": ["new"],
        "gone": ["old"],
    }
    assert delta.same == 1
    assert delta.environment == (("torch", "2.13.0", "2.14.0"),)


def test_a_case_that_passed_and_is_now_refused_or_blocked_is_a_regression(tmp_path: Path) -> None:
    before = make(tmp_path / "a", clause("event", Kind.PASS), clause("pool", Kind.PASS))
    after = make(tmp_path / "b", clause("event", Kind.REFUSED), clause("pool", Kind.BLOCKED))
    assert len(compare(before, after).regressions) == 2


def test_compare_ends_with_1_when_the_second_run_is_worse_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = make(tmp_path / "a", sampled("add", Kind.PASS)), make(tmp_path / "b", sampled("add", Kind.RAISED, 2))
    save(good)
    save(bad)
    assert main(["compare", str(good.path), str(bad.path)]) == 1
    assert "op/add/forward/float32/-  PASS -> RAISED, failed samples 0 -> 1" in capsys.readouterr().out
    assert main(["compare", str(bad.path), str(good.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fixed"][0]["id"] == "op/add/forward/float32/-"


@pytest.mark.parametrize("value", [BACKEND, sampled("mul", Kind.MISMATCH, 1, 3), clause("x", Kind.PASS), SPEC])
def test_every_type_survives_json(value: object) -> None:
    assert codec.loads(type(value), codec.dumps(value)) == value


def test_a_run_record_survives_json(results: Results) -> None:
    assert codec.loads(Run, write_text(results.run)) == results.run


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"id": "a", "kind": "GREAT"}', "Outcome.kind: got 'GREAT', wanted one of PASS, MISMATCH"),
        ('{"id": "a", "kind": "PASS", "note": 1}', "Outcome: got the unknown field 'note'"),
        ('{"id": 3, "kind": "PASS"}', "Outcome.id: got 3, wanted a str"),
        ("{", "got text that is not JSON"),
    ],
)
def test_json_of_another_form_is_named_by_field(text: str, says: str) -> None:
    with pytest.raises(codec.CodecError, match=says):
        codec.loads(Outcome, text)


def test_a_line_of_a_run_has_the_fields_that_scripts_rely_on() -> None:
    line = json.loads(line_of(sampled("mul", Kind.MISMATCH, 1)))
    assert {key: line[key] for key in ("id", "kind", "family", "seconds", "message")} == {
        "id": "op/mul/forward/float32/-",
        "kind": "MISMATCH",
        "family": "op",
        "seconds": 0.5,
        "message": "sample 1: got 1, wanted 2",
    }
