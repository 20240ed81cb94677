"""A run keeps what it measured and gives every planned case exactly one outcome, in every report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from torch_conformance.cli import main
from torch_conformance.run_folder import RunFolder, read_outcomes
from torch_conformance.run_record import read_results

SPEC = """
schema = 1
name = "fake"
device = "fake"
timeout_s = 20
"""
HARMLESS = ["--case", "fake/pass*/**", "--case", "fake/samples-pass/**"]


@pytest.fixture
def spec(fake_processes: Path) -> Path:
    file = fake_processes / "fake.toml"
    file.write_text(SPEC)
    return file


def run(spec: Path, *words: str) -> int:
    return main(["run", "--backend", str(spec), *words])


def test_every_planned_case_has_one_outcome_in_json_lines_summary_and_junit(spec: Path) -> None:
    assert run(spec, "--profile", "smoke", "--out", "r") == 1
    results = read_results(Path("r"))
    planned = [str(case.id) for case in results.cases]
    lines = [json.loads(line) for line in Path("r/run.jsonl").read_text().splitlines()]
    assert sorted(line["id"] for line in lines) == sorted(planned)
    kinds = Counter(line["kind"] for line in lines)
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["counts"]["cases"] == dict(kinds)
    assert summary["families"]["fake"]["cases"] == dict(kinds)
    root = ElementTree.parse("r/junit.xml").getroot()
    named = [element.find("properties/property[@name='id']").get("value") for element in root.iter("testcase")]
    assert named == planned


def test_only_the_guilty_are_blamed_each_with_its_kind(spec: Path) -> None:
    run(spec, "--profile", "smoke", "--out", "r")
    found = {name.split("/")[1]: item.kind.value for name, item in read_outcomes(Path("r")).items()}
    assert found == {
        "pass": "PASS",
        "pass-also": "PASS",
        "mismatch": "MISMATCH",
        "segfault": "CRASHED",
        "hang": "TIMED_OUT",
        "leave": "CRASHED",
        "flood": "PASS",
        "litter": "PASS",
        "needs-pass": "PASS",
        "needs-segfault": "BLOCKED",
        "needs-blocked": "BLOCKED",
        "needs-two-devices": "REFUSED",
        "pid": "MISMATCH",
        "samples-pass": "PASS",
        "crash-at-2": "CRASHED",
        "exit-at-0": "CRASHED",
        "hang-at-4": "TIMED_OUT",
        "mismatch-at-3": "MISMATCH",
        "crash-from-1": "CRASHED",
        "oracle-dies": "ORACLE_BROKEN",
        "none": "ORACLE_BROKEN",
    }


def test_a_run_of_passing_cases_ends_with_0(spec: Path) -> None:
    assert run(spec, *HARMLESS, "--out", "r") == 0
    assert read_results(Path("r")).run.finished


def test_a_refused_case_is_as_expected(spec: Path) -> None:
    assert run(spec, "--case", "fake/needs-two-devices/**", "--out", "r") == 0


def test_samples_are_counted_by_kind_and_none_is_lost(spec: Path) -> None:
    run(spec, "--case", "fake/crash-from-1/**", "--case", "fake/mismatch-at-3/**", "--out", "r")
    assert read_results(Path("r")).run.counts.samples == {"PASS": 4, "MISMATCH": 1, "CRASHED": 3, "NOT_RUN": 2}


def test_a_finished_folder_is_not_mixed_into(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(spec, *HARMLESS, "--out", "r")
    before = Path("r/run.jsonl").read_text()
    assert run(spec, *HARMLESS, "--out", "r") == 2
    assert "already holds a run. Go on with it by --resume" in capsys.readouterr().err
    assert Path("r/run.jsonl").read_text() == before


def test_a_folder_in_use_is_refused_and_its_user_named(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunFolder(Path("r")):
        assert run(spec, *HARMLESS, "--out", "r") == 2
    assert f"is in use by process {os.getpid()}" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").write_text("")
    assert run(spec, *HARMLESS, "--out", "file/r") == 2
    assert "cannot write the run folder" in capsys.readouterr().err


def test_an_unknown_case_is_wrong_usage_and_leaves_no_folder(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(spec, "--case", "fake/segfalt/**", "--out", "r") == 2
    assert "no case matches 'fake/segfalt/**'; the nearest id is 'fake/segfault/behaves/-/-'" in capsys.readouterr().err
    assert not Path("r").exists()


def test_resume_runs_only_what_is_left_and_survives_a_torn_line(spec: Path) -> None:
    run(spec, *HARMLESS, "--out", "r")
    lines = Path("r/run.jsonl").read_text().splitlines(keepends=True)
    run_id = read_results(Path("r")).run.run_id
    Path("r/run.jsonl").write_text(lines[0] + lines[1][:20])
    assert run(spec, *HARMLESS, "--out", "r", "--resume") == 0
    again = Path("r/run.jsonl").read_text().splitlines(keepends=True)
    assert again[0] == lines[0]
    assert len(again) == len(lines) == 3
    assert read_results(Path("r")).run.run_id == run_id


def test_resume_of_a_finished_run_runs_nothing_and_reports_again(spec: Path) -> None:
    run(spec, *HARMLESS, "--out", "r")
    before = Path("r/run.jsonl").read_text()
    assert run(spec, *HARMLESS, "--out", "r", "--resume") == 0
    assert Path("r/run.jsonl").read_text() == before


def test_resume_refuses_to_mix_another_seed_or_other_cases(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(spec, *HARMLESS, "--out", "r")
    assert run(spec, *HARMLESS, "--seed", "1", "--out", "r", "--resume") == 2
    assert "seed is another" in capsys.readouterr().err
    assert run(spec, "--case", "fake/flood/**", "--out", "r", "--resume") == 2
    assert "other cases are selected" in capsys.readouterr().err


def test_resume_without_a_folder_goes_on_with_the_newest_unfinished_run(spec: Path) -> None:
    run(spec, *HARMLESS)
    path = next(Path("runs").iterdir())
    lines = (path / "run.jsonl").read_text().splitlines(keepends=True)
    (path / "run.jsonl").write_text(lines[0])
    (path / "summary.json").unlink()
    assert run(spec, *HARMLESS, "--resume") == 0
    assert list(Path("runs").iterdir()) == [path]


def test_last_failed_runs_what_was_not_as_expected(spec: Path) -> None:
    run(spec, "--case", "fake/mismatch/**", "--case", "fake/pass/**", "--out", "runs/a")
    assert run(spec, "--last-failed", "--out", "runs/b") == 1
    assert list(read_outcomes(Path("runs/b"))) == ["fake/mismatch/behaves/-/-"]


def test_a_backend_that_does_not_start_ends_with_3_and_every_case_is_not_run(
    spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "--backend", str(spec)]) == 0
    monkeypatch.setenv("FAKE_START", "fails")
    capsys.readouterr()
    assert run(spec, *HARMLESS, "--out", "r") == 3
    error = capsys.readouterr().err
    assert "the chip is on fire; put it out" in error
    assert "Traceback" not in error
    assert {item.kind.value for item in read_results(Path("r")).outcomes.values()} == {"NOT_RUN"}


# Needs SIGINT to itself: an xdist worker that has run other tests may no longer get it as an interrupt.
@pytest.mark.long
def test_an_interrupt_keeps_what_was_measured_and_leaves_no_process(
    spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_SLOW_S", "30")

    def interrupt() -> None:
        end = time.monotonic() + 20
        while time.monotonic() < end and not (Path("r/run.jsonl").exists() and Path("r/run.jsonl").read_text()):
            time.sleep(0.02)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    begin = time.monotonic()
    words = ["--profile", "full", "--case", "fake/pass-also/**", "--case", "fake/slow/**"]
    code = run(spec, *words, "--out", "r")
    thread.join()
    assert code == 1
    assert time.monotonic() - begin < 25
    results = read_results(Path("r"))
    kinds = {name.split("/")[1]: item.kind.value for name, item in results.outcomes.items()}
    assert kinds == {"pass-also": "PASS", "slow": "NOT_RUN"}
    assert results.outcomes["fake/slow/behaves/-/-"].message == "the run was interrupted before it"
    assert not results.run.finished
    assert "go on with --resume" in capsys.readouterr().out
    monkeypatch.setenv("FAKE_SLOW_S", "0")
    assert run(spec, *words, "--out", "r", "--resume") == 0


def test_an_expected_deviation_makes_the_run_as_expected(spec: Path) -> None:
    Path("known.toml").write_text(
        'schema = 1\n[[expect]]\ncase = "fake/mismatch/**"\nkinds = ["MISMATCH"]\nreason = "two is not one here"\n'
    )
    assert run(spec, "--case", "fake/mismatch/**", "--expect", "known.toml", "--out", "r") == 0
    run_record = read_results(Path("r")).run
    assert run_record.deviations["fake/mismatch/behaves/-/-"].reason == "two is not one here"
    assert (run_record.samples_expected, run_record.samples_planned) == (1, 1)


def test_an_unexpected_pass_ends_with_1_and_names_the_entry(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("known.toml").write_text(
        'schema = 1\n[[expect]]\ncase = "fake/pass/**"\nkinds = ["RAISED"]\nreason = "it used to raise"\n'
    )
    assert run(spec, "--case", "fake/pass/**", "--expect", "known.toml", "--out", "r") == 1
    assert "all that the entry 'fake/pass/**' covers passes; remove the entry" in capsys.readouterr().out
    failure = ElementTree.parse("r/junit.xml").getroot().find(".//failure")
    assert failure is not None
    assert failure.get("type") == "unexpected pass"


def test_an_entry_that_matches_no_case_ends_with_1_and_names_the_nearest(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("known.toml").write_text(
        'schema = 1\n[[expect]]\ncase = "fake/mismatsch/behaves/-/-"\nkinds = ["RAISED"]\nreason = "a typo"\n'
    )
    assert run(spec, *HARMLESS, "--expect", "known.toml", "--out", "r") == 1
    assert "matches no case of the plan; the nearest id is 'fake/mismatch/behaves/-/-'" in capsys.readouterr().out


def test_the_parent_never_imports_torch(spec: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from torch_conformance import process\n"
        "from torch_conformance.cli import main\n"
        f"process.BOOTSTRAP = Path({str(Path(__file__).with_name('fake_bootstrap.py'))!r})\n"
        f"code = main(['run', '--backend', {str(spec)!r}, '--profile', 'smoke', '--out', 'p'])\n"
        "main(['show', 'p']); main(['report', 'p']); main(['compare', 'p', 'p']); main(['backends'])\n"
        "assert code == 1, code\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('torch', 'numpy')], 'torch was imported'\n"
        "assert not [name for name in sys.modules if name.startswith('torch_conformance.device')], 'device code'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_listing_imports_neither_pytest_nor_rich(spec: Path) -> None:
    assert main(["list", "--backend", str(spec)]) == 0
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from torch_conformance import process\n"
        "from torch_conformance.cli import main\n"
        f"process.BOOTSTRAP = Path({str(Path(__file__).with_name('fake_bootstrap.py'))!r})\n"
        f"assert main(['list', '--backend', {str(spec)!r}, '--json']) == 0\n"
        "assert not {'torch', 'pytest', 'rich', 'jinja2'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
