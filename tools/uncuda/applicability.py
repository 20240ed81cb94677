"""Whether each patch of a series still has its place in a torch tree."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from .git_apply import git_apply
from .patch import Patch
from .series import Series
from .tree import TorchTree


class Fit(str, Enum):
    """How a patch fits a tree."""

    APPLIES = "applies"
    DRIFT = "applies with drift"
    """Every hunk found its place, but not where the patch says."""
    SUPERSEDED = "superseded"
    """The tree already holds the change."""
    CONFLICTS = "conflicts"


@dataclass(frozen=True, slots=True)
class Applicability:
    """How one patch fits one tree.

    Attributes:
        topic: the patch.
        alone: applied to the tree as it is.
        in_series: applied after the patches that come before it and fit.
        detail: how far it drifted, or what git said; empty when it applies as written.
    """

    topic: str
    alone: Fit
    in_series: Fit
    detail: str = ""


def check_series(series: Series, tree: TorchTree) -> list[Applicability]:
    """Try every patch on copies of the files it touches: alone, and in order. The tree is only read."""
    found = []
    with tempfile.TemporaryDirectory(prefix="uncuda-check-") as folder:
        together = Path(folder) / "series"
        together.mkdir()
        for index, patch in enumerate(series.patches):
            alone = Path(folder) / str(index)
            alone.mkdir()
            _copy(patch, tree, alone)
            fit, detail = _try(patch, alone)
            _copy(patch, tree, together)
            in_series, in_detail = _try(patch, together)
            found.append(Applicability(patch.topic, fit, in_series, detail or in_detail))
    return found


def _copy(patch: Patch, tree: TorchTree, target: Path) -> None:
    for name in patch.touched:
        source, copy = tree.root / name, target / name
        # In the folder of the whole series an earlier patch may have changed it already.
        if source.is_file() and not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)


def _try(patch: Patch, folder: Path) -> tuple[Fit, str]:
    """Apply a patch for good if all of its files apply, else leave the folder as it was."""
    done: list[Path] = []
    drift, message = 0, ""
    for file in patch.files:
        applied = git_apply(folder, file)
        if not applied.ok:
            message = f"{file.name}: {applied.message}"
            break
        done.append(file)
        drift = max(drift, applied.offset_lines)
    else:
        return (Fit.DRIFT, f"up to {drift} lines") if drift else (Fit.APPLIES, "")
    for file in reversed(done):
        git_apply(folder, file, reverse=True)
    if _is_there(patch, folder):
        return Fit.SUPERSEDED, "the tree already holds it"
    return Fit.CONFLICTS, message


def _is_there(patch: Patch, folder: Path) -> bool:
    """Whether the patch can be taken out, last file first; the folder is left as it was."""
    taken: list[Path] = []
    for file in reversed(patch.files):
        if not git_apply(folder, file, reverse=True).ok:
            break
        taken.append(file)
    for file in reversed(taken):
        git_apply(folder, file)
    return len(taken) == len(patch.files)
