"""Whether a patch still has its place in a torch tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_series import NUMBERS, diff, make_series, make_tree, write_topic
from uncuda.applicability import Fit, check_series
from uncuda.series import Series, load_series
from uncuda.tree import TreeError, read_tree


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "site")


@pytest.fixture
def series(tmp_path: Path) -> Series:
    return make_series(tmp_path / "patches")


def _fits(series: Series, site: Path) -> dict[str, tuple[Fit, Fit]]:
    return {item.topic: (item.alone, item.in_series) for item in check_series(series, read_tree(site))}


def test_a_patch_applies_to_the_tree_it_was_made_for(series: Series, site: Path) -> None:
    assert _fits(series, site) == {"gate": (Fit.APPLIES, Fit.APPLIES), "numbers": (Fit.APPLIES, Fit.APPLIES)}


def test_a_patch_drifts_when_lines_were_added_above(series: Series, site: Path) -> None:
    (site / "torch" / "numbers.py").write_text("# one\n# two\n# three\n" + NUMBERS)
    [found] = [item for item in check_series(series, read_tree(site)) if item.topic == "numbers"]
    assert (found.alone, found.detail) == (Fit.DRIFT, "up to 3 lines")


def test_a_patch_is_superseded_when_the_tree_holds_the_change(series: Series, site: Path) -> None:
    (site / "torch" / "numbers.py").write_text(NUMBERS.replace("line_30 = 30", "line_30 = 3000"))
    assert _fits(series, site)["numbers"] == (Fit.SUPERSEDED, Fit.SUPERSEDED)


def test_a_patch_conflicts_when_the_place_changed_in_another_way(series: Series, site: Path) -> None:
    (site / "torch" / "numbers.py").write_text(NUMBERS.replace("line_30 = 30", "line_30 = 31"))
    [found] = [item for item in check_series(series, read_tree(site)) if item.topic == "numbers"]
    assert found.alone is Fit.CONFLICTS
    assert "patch failed: torch/numbers.py" in found.detail


def test_a_patch_conflicts_when_its_file_is_gone(series: Series, site: Path) -> None:
    (site / "torch" / "numbers.py").unlink()
    assert _fits(series, site)["numbers"] == (Fit.CONFLICTS, Fit.CONFLICTS)


def test_two_patches_of_one_place_apply_alone_and_conflict_in_the_series(tmp_path: Path, site: Path) -> None:
    root = tmp_path / "patches"
    for topic in ("one", "two"):
        write_topic(root, topic, diff("torch/nn/gate.py", "DEVICE = 'cuda'\n", f"DEVICE = '{topic}'\n", tmp_path))
    (root / "order").write_text("one\ntwo\n")
    assert _fits(load_series(root), site) == {
        "one": (Fit.APPLIES, Fit.APPLIES),
        "two": (Fit.APPLIES, Fit.CONFLICTS),
    }


def test_checking_only_reads_the_tree(series: Series, site: Path) -> None:
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    check_series(series, read_tree(site))
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before


def test_a_checkout_says_its_version_in_version_txt(site: Path) -> None:
    (site / "torch" / "version.py").unlink()
    (site / "version.txt").write_text("2.13.0a0\n")
    assert read_tree(site).base == "2.13.0"


def test_the_torch_folder_itself_may_be_named(site: Path) -> None:
    assert read_tree(site / "torch").root == site


def test_a_folder_without_torch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match=r"wanted a folder that holds torch/__init__\.py"):
        read_tree(tmp_path)
