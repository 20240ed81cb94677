"""Overlays: the patched tree is what runs, and the installed one is never written to."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_series import diff, make_series, make_tree, write_topic
from uncuda.overlay import OverlayError, PatchDoesNotApply, make_overlay
from uncuda.series import Series, load_series
from uncuda.tree import TorchTree, installed_tree, read_tree


@pytest.fixture
def tree(tmp_path: Path) -> TorchTree:
    return read_tree(make_tree(tmp_path / "site"))


@pytest.fixture
def series(tmp_path: Path) -> Series:
    return make_series(tmp_path / "patches")


def _digest(folder: Path) -> str:
    state = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        state.update(f"{path.relative_to(folder)} {path.is_symlink()}".encode())
        if path.is_file():
            state.update(path.read_bytes())
    return state.hexdigest()


def _plain_environment() -> dict[str, str]:
    """Without what would keep bytecode from being written, or put it elsewhere."""
    unwanted = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def _device_seen_by(python_path: Path, env: dict[str, str]) -> str:
    code = "import torch.nn.gate; print(torch.nn.gate.DEVICE)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**_plain_environment(), "PYTHONPATH": str(python_path), **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_python_runs_the_patched_file(tree: TorchTree, series: Series, tmp_path: Path) -> None:
    overlay = make_overlay(series, tree, tmp_path / "overlay")
    assert _device_seen_by(overlay.folder, overlay.env) == "meta"


def test_the_base_tree_is_untouched_by_making_and_running_an_overlay(
    tree: TorchTree, series: Series, tmp_path: Path
) -> None:
    before = _digest(tree.root)
    overlay = make_overlay(series, tree, tmp_path / "overlay")
    _device_seen_by(overlay.folder, overlay.env)
    _device_seen_by(overlay.folder, {})
    assert _digest(tree.root) == before
    assert (tree.package / "nn" / "gate.py").read_text() == "DEVICE = 'cuda'\n"


def test_bytecode_of_the_base_never_stands_in_for_a_patched_file_of_the_same_size_and_time(
    tree: TorchTree, series: Series, tmp_path: Path
) -> None:
    gate = tree.package / "nn" / "gate.py"
    assert _device_seen_by(tree.root, {}) == "cuda"
    assert (gate.parent / "__pycache__").is_dir()
    overlay = make_overlay(series, tree, tmp_path / "overlay")
    patched = overlay.folder / "torch" / "nn" / "gate.py"
    os.utime(patched, ns=(gate.stat().st_atime_ns, gate.stat().st_mtime_ns))
    assert patched.stat().st_size == gate.stat().st_size
    assert _device_seen_by(overlay.folder, overlay.env) == "meta"
    assert _device_seen_by(overlay.folder, {}) == "meta"
    assert _device_seen_by(tree.root, {}) == "cuda"


def test_bytecode_of_an_earlier_overlay_in_the_same_place_is_not_run(
    tree: TorchTree, series: Series, tmp_path: Path
) -> None:
    first = make_overlay(series, tree, tmp_path / "overlay")
    patched = first.folder / "torch" / "nn" / "gate.py"
    times = (patched.stat().st_atime_ns, patched.stat().st_mtime_ns)
    assert _device_seen_by(first.folder, first.env) == "meta"
    patch = series.root / "gate" / "0001-cure.patch"
    patch.write_text(patch.read_text().replace("meta", "mtia"))
    second = make_overlay(load_series(series.root), tree, tmp_path / "overlay")
    os.utime(patched, ns=times)
    assert _device_seen_by(second.folder, second.env) == "mtia"


def test_files_are_links_the_touched_ones_are_real_and_no_bytecode_is_linked(
    tree: TorchTree, series: Series, tmp_path: Path
) -> None:
    _device_seen_by(tree.root, {})
    overlay = make_overlay(series, tree, tmp_path / "overlay")
    root = overlay.folder / "torch"
    assert (root / "__init__.py").is_symlink()
    assert not (root / "nn").is_symlink()
    assert not (root / "nn" / "gate.py").is_symlink()
    assert (root / "lib").is_symlink()
    assert (root / "lib" / "libtorch.so").read_text() == "library"
    assert not [path for path in overlay.folder.rglob("*.pyc") if path.is_symlink()]
    assert not list(root.rglob("__pycache__"))


def test_a_folder_of_headers_is_real_where_a_patch_touches_it(tree: TorchTree, tmp_path: Path) -> None:
    root = tmp_path / "patches"
    change = diff("torch/include/c10/macros.h", "#pragma once\n", "#pragma once\n// more\n", tmp_path)
    write_topic(root, "header", change)
    (root / "order").write_text("header\n")
    overlay = make_overlay(load_series(root), tree, tmp_path / "overlay")
    header = overlay.folder / "torch" / "include" / "c10" / "macros.h"
    assert "more" in header.read_text()
    assert "more" not in (tree.package / "include" / "c10" / "macros.h").read_text()


def test_a_patch_may_add_a_file(tree: TorchTree, tmp_path: Path) -> None:
    root = tmp_path / "patches"
    added = (
        "diff --git a/torch/fresh/new.py b/torch/fresh/new.py\nnew file mode 100644\n"
        "--- /dev/null\n+++ b/torch/fresh/new.py\n@@ -0,0 +1 @@\n+VALUE = 1\n"
    )
    write_topic(root, "fresh", added)
    (root / "order").write_text("fresh\n")
    overlay = make_overlay(load_series(root), tree, tmp_path / "overlay")
    assert (overlay.folder / "torch" / "fresh" / "new.py").read_text() == "VALUE = 1\n"
    assert not (tree.package / "fresh").exists()


def test_making_it_again_changes_nothing(tree: TorchTree, series: Series, tmp_path: Path) -> None:
    first = make_overlay(series, tree, tmp_path / "overlay")
    inode = first.folder.stat().st_ino
    again = make_overlay(series, tree, tmp_path / "overlay")
    assert (first.reused, again.reused) == (False, True)
    assert first.folder.stat().st_ino == inode
    assert again.series_digest == first.series_digest


def test_a_changed_base_tree_makes_a_new_overlay(tree: TorchTree, series: Series, tmp_path: Path) -> None:
    make_overlay(series, tree, tmp_path / "overlay")
    (tree.package / "version.py").write_text("__version__ = '2.13.0'\ngit_version = 'def456'\n")
    assert not make_overlay(series, read_tree(tree.root), tmp_path / "overlay").reused


def test_the_stamp_says_what_is_in_it(tree: TorchTree, series: Series, tmp_path: Path) -> None:
    overlay = make_overlay(series, tree, tmp_path / "overlay")
    stamp = json.loads((overlay.folder / "overlay.json").read_text())
    assert stamp["topics"] == ["gate", "numbers"]
    assert stamp["series_digest"] == series.digest
    assert (stamp["torch"], stamp["torch_git"]) == ("2.13.0", "abc123")


def test_an_overlay_inside_a_repository_is_patched_as_well(tree: TorchTree, series: Series, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=repository, check=True)
    overlay = make_overlay(series, tree, repository / "build" / "overlay")
    assert (overlay.folder / "torch" / "nn" / "gate.py").read_text() == "DEVICE = 'meta'\n"


def test_a_torch_of_another_version_is_refused(series: Series, tmp_path: Path) -> None:
    tree = read_tree(make_tree(tmp_path / "other", version="2.12.1+cu130"))
    with pytest.raises(OverlayError, match=r"gate is written for torch 2\.13\.0, but .* is torch 2\.12\.1\+cu130"):
        make_overlay(series, tree, tmp_path / "overlay")
    assert not (tmp_path / "overlay").exists()


def test_a_patch_that_does_not_apply_is_named_and_leaves_nothing_behind(
    tree: TorchTree, series: Series, tmp_path: Path
) -> None:
    (tree.package / "numbers.py").write_text("other = 1\n")
    with pytest.raises(
        PatchDoesNotApply, match=r"numbers/0001-cure\.patch does not apply after gate: .*patch failed: torch/numbers"
    ):
        make_overlay(series, tree, tmp_path / "overlay")
    assert not (tmp_path / "overlay").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["diff", "patches", "site"]


def test_a_folder_with_other_things_in_it_is_left_alone(tree: TorchTree, series: Series, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("precious")
    with pytest.raises(OverlayError, match=r"is not empty and holds no overlay\.json"):
        make_overlay(series, tree, tmp_path / "home")
    assert (tmp_path / "home" / "thesis.txt").read_text() == "precious"


def test_the_real_torch_imports_from_an_overlay_and_stays_as_it_was(tmp_path: Path) -> None:
    tree = installed_tree()
    series = load_series(Path(__file__).parents[2] / "patches")
    touched = [tree.root / name for patch in series.patches for name in patch.touched]
    before = [hashlib.sha256(path.read_bytes()).hexdigest() for path in touched]
    overlay = make_overlay(series, tree, tmp_path / "overlay")
    code = (
        "import inspect, torch; print(torch.__file__); print(torch.ones(2).sum().item());"
        "print(inspect.signature(torch.amp.GradScaler.__init__).parameters['device'].default)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**_plain_environment(), "PYTHONPATH": str(overlay.folder), **overlay.env},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [str(overlay.folder / "torch" / "__init__.py"), "2.0", "None"]
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in touched] == before
