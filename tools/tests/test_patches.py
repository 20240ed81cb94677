"""The series of this repository: every topic is well formed, applies, is proven, and says what a person must know."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest
from uncuda.applicability import Fit, check_series
from uncuda.evidence import Standing, standing
from uncuda.finding import Verdict
from uncuda.git_apply import git_apply
from uncuda.overlay import make_overlay
from uncuda.patch import Patch
from uncuda.scanner import scan
from uncuda.series import Series, load_series
from uncuda.tree import installed_tree

SERIES = load_series(Path(__file__).parents[2] / "patches")
EVERY = pytest.mark.parametrize("patch", SERIES.patches, ids=SERIES.topics)


def test_the_kinds_that_matter_most_are_covered() -> None:
    kinds = {kind for patch in SERIES.patches for kind in patch.taxonomy}
    assert {"A1", "B2", "B6", "F3"} <= kinds


def test_every_patch_applies_as_written_to_the_installed_torch() -> None:
    found = check_series(SERIES, installed_tree())
    assert {item.topic: item.alone for item in found} == dict.fromkeys(SERIES.topics, Fit.APPLIES)
    assert all(item.in_series in (Fit.APPLIES, Fit.DRIFT) for item in found)


@EVERY
def test_the_patch_is_proven_as_it_is(patch: Patch) -> None:
    kind, why = standing(patch, SERIES)
    assert kind is Standing.CURRENT, why


@EVERY
def test_the_cover_says_that_a_person_must_send_it(patch: Patch) -> None:
    cover = " ".join((patch.folder / "cover.md").read_text().split())
    assert "AI assistance" in cover
    assert "was not submitted anywhere" in cover
    assert "contributions by fully autonomous agents" in cover


@EVERY
def test_the_patched_files_parse_and_add_no_device_name(patch: Patch, tmp_path: Path) -> None:
    overlay = make_overlay(Series(SERIES.root, (patch,)), installed_tree(), tmp_path / "overlay")
    for name in patch.touched:
        ast.parse((overlay.folder / name).read_text())
    added = [line for file in patch.files for line in file.read_text().splitlines() if re.match(r"\+(?!\+\+)", line)]
    assert added
    assert not [line for line in added if re.search(r"neuron|hpu|npu|openreg", line)]


@EVERY
def test_the_finder_calls_the_place_a_defect_and_not_more_so_after_the_patch(patch: Patch, tmp_path: Path) -> None:
    for name in patch.touched:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(installed_tree().root / name, tmp_path / name)
    before = _defects(tmp_path)
    assert set(patch.findings) <= set(before)
    for file in patch.files:
        assert git_apply(tmp_path, file).ok
    after = _defects(tmp_path)
    assert all(after.count(code) <= before.count(code) for code in patch.findings)


def _defects(tree: Path) -> list[str]:
    return [finding.code for finding in scan(tree, jobs=1).findings if finding.verdict is Verdict.DEFECT]


@EVERY
def test_no_patch_takes_cuda_away(patch: Patch) -> None:
    """A line with the word that goes must come back, in the same number: "cuda" also means ROCm."""
    text = "".join(file.read_text() for file in patch.files)
    removed = len(re.findall(r"^-(?!--).*\bcuda\b", text, re.MULTILINE))
    added = len(re.findall(r"^\+(?!\+\+).*\bcuda\b", text, re.MULTILINE))
    assert added or not removed or patch.topic in CUDA_THROUGH_ITS_OWN_HANDLE


CUDA_THROUGH_ITS_OWN_HANDLE = {
    # The handle of a CUDA tracker is torch.cuda itself.
    "local-tensor-rng-device",
    # CUDA is one of the devices that the loop goes through.
    "process-group-timeout",
}
