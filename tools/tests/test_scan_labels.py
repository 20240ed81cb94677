"""The labelled hits of torch 2.13.0: the finder against a person's judgement.

Needs the labels beside the repository.
"""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path

import pytest
from uncuda.finding import Finding, Verdict
from uncuda.place import PlaceError, locate
from uncuda.project import Project
from uncuda.reading import Unread, walk
from uncuda.scanner import scan_file

CASES = Path(__file__).parents[3] / "shared" / "cases"
SLACK = 2

pytestmark = pytest.mark.skipif(not (CASES / "labels.csv").is_file(), reason="the labels are not beside the repository")


@cache
def project() -> Project:
    """Every file of the installed torch; a test asks for the findings of the few that it needs."""
    try:
        root, base = locate("torch")
    except PlaceError:
        pytest.skip("torch is not installed")
    if "2.13.0" not in (root / "version.py").read_text():
        pytest.skip("the labels are of torch 2.13.0")
    return Project({item[0]: item[1].read_bytes() for item in walk(root, base) if not isinstance(item, Unread)})


@cache
def findings(path: str) -> tuple[Finding, ...]:
    return tuple(scan_file(project(), path))


def covering(path: str, line: int) -> list[Finding]:
    return [f for f in findings(path) if f.location.line - SLACK <= line <= f.location.end_line + SLACK]


def defects(verdict: str) -> tuple[int, int]:
    rows = [row for row in csv.DictReader((CASES / "labels.csv").open()) if row["verdict"] == verdict]
    hits = [covering("torch/" + row["file"], int(row["line"])) for row in rows]
    return sum(any(f.verdict is Verdict.DEFECT for f in hit) for hit in hits), len(rows)


def test_nine_in_ten_bugs_are_called_defects() -> None:
    found, total = defects("bug")
    assert total
    assert found / total >= 0.9


def test_at_most_one_in_twenty_legitimate_hits_is_called_a_defect() -> None:
    found, total = defects("legit")
    assert total
    assert found / total <= 0.05


def confirmed() -> list[tuple[str, str, int]]:
    cases = []
    for folder in sorted((CASES / "assumptions").glob("*/")):
        place = re.search(r"offending line: (\S+):(\d+)", (folder / "notes.md").read_text())
        if place:
            cases.append((folder.name, place[1], int(place[2])))
    return cases


@pytest.mark.parametrize(("name", "path", "line"), confirmed() if CASES.is_dir() else [])
def test_a_confirmed_assumption_is_found(name: str, path: str, line: int) -> None:
    assert covering(path, line), f"{name}: nothing is found at {path}:{line}"
