"""What counts as proof, and what stored evidence is worth after a change."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from small_series import make_series
from uncuda.effect import Seen, changed, made_worse, not_cured
from uncuda.evidence import CaseEvidence, DeviceEvidence, Evidence, Standing, read_evidence, standing, write_evidence
from uncuda.series import Series, load_series

CASE = "a/b/c/-/-"


@pytest.fixture
def series(tmp_path: Path) -> Series:
    return make_series(tmp_path / "patches")


def _evidence(series: Series, topic: str = "gate") -> Evidence:
    [patch] = series.select([topic]).patches
    case = CaseEvidence(CASE, before="RAISED", alone="PASS", series="PASS", message="ValueError: no such device")
    device = DeviceEvidence("device", "device", "Device 0", "build 1", "3.11.7", (case,), guarded=12)
    return Evidence(
        topic, patch.digest, series.digest, "2.13.0", "abc", "def", ("uncuda verify --backend device",), (device,)
    )


def _standing(series: Series, topic: str = "gate") -> Standing:
    series = load_series(series.root)
    [patch] = series.select([topic]).patches
    return standing(patch, series)[0]


def test_evidence_is_read_as_it_was_written(series: Series) -> None:
    evidence = _evidence(series)
    write_evidence(evidence, series.root / "gate")
    assert read_evidence(series.root / "gate") == evidence
    assert _standing(series) is Standing.CURRENT


def test_without_a_file_evidence_is_missing(series: Series) -> None:
    assert _standing(series) is Standing.MISSING


def test_a_changed_patch_makes_its_evidence_stale(series: Series) -> None:
    write_evidence(_evidence(series), series.root / "gate")
    patch = series.root / "gate" / "0001-cure.patch"
    patch.write_text(patch.read_text().replace("meta", "mtia"))
    assert _standing(series) is Standing.STALE


def test_another_case_makes_evidence_stale(series: Series) -> None:
    write_evidence(_evidence(series), series.root / "gate")
    topic = series.root / "gate" / "topic.toml"
    topic.write_text(topic.read_text().replace(CASE, "a/b/d/-/-"))
    assert _standing(series) is Standing.STALE


def test_another_patch_that_changed_is_told_apart(series: Series) -> None:
    write_evidence(_evidence(series), series.root / "gate")
    patch = series.root / "numbers" / "0001-cure.patch"
    patch.write_text(patch.read_text().replace("3000", "4000"))
    assert _standing(series) is Standing.SERIES_CHANGED


@pytest.mark.parametrize("change", [{"before": "PASS"}, {"alone": "RAISED"}, {"series": "MISMATCH"}])
def test_evidence_that_shows_no_cure_is_broken(series: Series, change: dict[str, str]) -> None:
    evidence = _evidence(series)
    [device] = evidence.devices
    case = dataclasses.replace(device.cases[0], **change)
    device = dataclasses.replace(device, cases=(case,))
    write_evidence(dataclasses.replace(evidence, devices=(device,)), series.root / "gate")
    assert _standing(series) is Standing.BROKEN


def test_evidence_that_shows_a_case_made_worse_is_broken(series: Series) -> None:
    evidence = _evidence(series)
    device = dataclasses.replace(evidence.devices[0], worse=("x: PASS before, RAISED after",))
    write_evidence(dataclasses.replace(evidence, devices=(device,)), series.root / "gate")
    assert _standing(series) is Standing.BROKEN


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 2}', '{"schema": 1, "topic": "gate"}', '{"schema": 1'])
def test_a_file_that_is_no_evidence_is_broken_and_no_crash(series: Series, text: str) -> None:
    (series.root / "gate" / "evidence.json").write_text(text)
    assert _standing(series) is Standing.BROKEN


def test_a_case_is_cured_when_it_fails_before_and_passes_after() -> None:
    assert not_cured([CASE], {CASE: Seen("MISMATCH")}, {CASE: Seen("PASS")}) == []


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ({CASE: Seen("PASS")}, {CASE: Seen("PASS")}, "passes before the patch as well"),
        ({CASE: Seen("RAISED")}, {CASE: Seen("RAISED", "no device")}, "after the patch it is RAISED: no device"),
        ({CASE: Seen("REFUSED", "not claimed")}, {CASE: Seen("PASS")}, "which is no failure of torch"),
        ({CASE: Seen("BLOCKED")}, {CASE: Seen("PASS")}, "which is no failure of torch"),
        ({CASE: Seen("ORACLE_BROKEN")}, {CASE: Seen("PASS")}, "which is no failure of torch"),
        ({}, {CASE: Seen("PASS")}, "there is no such case"),
        ({CASE: Seen("RAISED")}, {}, "there is no such case"),
    ],
)
def test_anything_else_is_no_proof(before: dict[str, Seen], after: dict[str, Seen], says: str) -> None:
    [problem] = not_cured([CASE], before, after)
    assert says in problem


def test_a_case_that_no_longer_passes_or_is_gone_was_made_worse() -> None:
    before = {"x": Seen("PASS"), "y": Seen("PASS"), "z": Seen("RAISED")}
    after = {"x": Seen("TIMED_OUT", "hung"), "z": Seen("MISMATCH")}
    assert made_worse(before, after) == ["x: PASS before, TIMED_OUT after: hung", "y: PASS before, not there after"]


def test_on_a_device_that_must_not_change_even_a_cure_is_a_change() -> None:
    before = {"x": Seen("RAISED"), "y": Seen("PASS")}
    after = {"x": Seen("PASS"), "y": Seen("PASS"), "z": Seen("PASS")}
    assert changed(before, after) == ["x: RAISED before, PASS after", "z: not there before, PASS after"]
