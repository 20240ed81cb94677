"""The series as files for a person to send."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from small_series import make_series, make_tree
from uncuda.export import ExportError, export_mailbox, export_patches
from uncuda.series import Series

AUTHOR = "Ada Example <ada@example.org>"


@pytest.fixture
def series(tmp_path: Path) -> Series:
    return make_series(tmp_path / "patches")


def _git(checkout: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    done = subprocess.run(["git", *settings, *arguments], cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = make_tree(tmp_path / "checkout")
    _git(root, "init", "-q")
    _git(root, "add", "-A")
    _git(root, "commit", "-q", "-m", "base")
    return root


def test_patches_are_numbered_in_the_order_in_which_they_apply(series: Series, tmp_path: Path) -> None:
    written = export_patches(series, tmp_path / "out")
    assert [path.name for path in written] == ["0001-gate-cure.patch", "0002-numbers-cure.patch"]
    assert written[0].read_bytes() == series.patches[0].files[0].read_bytes()


def test_git_am_takes_the_mailbox_and_names_the_author(series: Series, checkout: Path, tmp_path: Path) -> None:
    [mailbox] = export_mailbox(series, tmp_path / "out", AUTHOR)
    _git(checkout, "am", "-q", str(mailbox))
    log = _git(checkout, "log", "--reverse", "--format=%an <%ae>|%s").splitlines()
    assert log[1:] == [f"{AUTHOR}|Cure gate", f"{AUTHOR}|Cure numbers"]
    assert (checkout / "torch" / "nn" / "gate.py").read_text() == "DEVICE = 'meta'\n"
    assert "line_30 = 3000" in (checkout / "torch" / "numbers.py").read_text()


def test_the_mailbox_discloses_the_assistance(series: Series, checkout: Path, tmp_path: Path) -> None:
    [mailbox] = export_mailbox(series, tmp_path / "out", AUTHOR)
    _git(checkout, "am", "-q", str(mailbox))
    assert "prepared with AI assistance" in _git(checkout, "log", "-1", "--format=%b")


@pytest.mark.parametrize("author", ["", "Ada", "ada@example.org", "Ada <ada>", "A\nB <a@b.c>"])
def test_a_mailbox_without_a_person_is_refused(series: Series, tmp_path: Path, author: str) -> None:
    with pytest.raises(ExportError, match="of the person who has reviewed the patches"):
        export_mailbox(series, tmp_path / "out", author)
    assert not (tmp_path / "out").exists()


def test_an_earlier_export_is_not_mixed_with_a_new_one(series: Series, tmp_path: Path) -> None:
    export_patches(series, tmp_path / "out")
    with pytest.raises(ExportError, match="holds patches already"):
        export_patches(series, tmp_path / "out")
