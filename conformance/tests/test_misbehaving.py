"""A real backend that segfaults, hangs, leaves and floods costs exactly those cases, with workers and real torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

SPEC = Path(__file__).parent / "backends" / "misbehaving.toml"
GUILTY = {"erfinv": "CRASHED", "lgamma": "TIMED_OUT", "digamma": "CRASHED"}
HARMLESS = ("sinc", "add")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("misbehaving") / "run"
    words = [sys.executable, "-m", "torch_conformance.cli", "run", "--backend", str(SPEC), "--profile", "smoke"]
    words += ["--dtype", "float32", "-n", "2", "--out", str(folder)]
    for op in (*GUILTY, *HARMLESS):
        words += ["--op", op]
    env = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
    return folder, subprocess.run(words, capture_output=True, text=True, env=env, check=False)


def test_the_report_has_every_planned_case_and_exactly_the_guilty_are_blamed(
    run: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = run
    assert done.returncode == 1, done.stderr
    wanted = {f"op/{op}/forward/float32/-": GUILTY.get(op, "PASS") for op in (*GUILTY, *HARMLESS)}
    lines = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
    assert {line["id"]: line["kind"] for line in lines} == wanted
    assert len(lines) == len(wanted)
    root = ElementTree.parse(folder / "junit.xml").getroot()
    shown = {
        element.find("properties/property[@name='id']").get("value"): element.find(
            "properties/property[@name='kind']"
        ).get("value")
        for element in root.iter("testcase")
    }
    assert shown == wanted
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == ("5", "3", "0")


def test_each_end_is_told_as_it_was(run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = run
    lines = (json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines())
    by_op = {line["id"].split("/")[1]: line for line in lines}
    assert by_op["erfinv"]["observation"]["exit"] == "signal SIGSEGV"
    assert "_segfault" in by_op["erfinv"]["observation"]["stack"]
    assert by_op["digamma"]["observation"]["exit"] == "exit 0"
    assert "_hang" in by_op["lgamma"]["observation"]["stack"]
    for op in GUILTY:
        assert f"op/{op}/forward/float32/-" in done.stdout
    assert "3 regressions" in done.stdout
