"""A patched torch beside the installed one: real folders, symlinked files, the touched files real.

Put the overlay first on ``PYTHONPATH`` and the patched torch is imported; the installed one is never written to.
No bytecode is linked: Python would write the patched bytecode through the link into the installed tree, and would run
old bytecode for a patched file of the same size and time. For the same reason each overlay has a bytecode folder of
its own, which is made anew with the overlay; it is filled with copies for the files that no patch touches, so that the
first import is as quick as any other.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from .git_apply import git_apply
from .series import Series
from .tree import TorchTree

SCHEMA = 1
STAMP = "overlay.json"
BYTECODE = ".pycache"
"""The conformance suite looks there by itself when an overlay is on a backend's path."""


class OverlayError(Exception):
    """An overlay that cannot be made as asked."""


class PatchDoesNotApply(OverlayError):
    """A hunk of a patch did not find its place."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """A patched torch tree.

    Attributes:
        folder: what to put first on ``PYTHONPATH``.
        topics: the patches in it, in the order in which they were applied.
        series_digest: of exactly these patches.
        torch: version of the tree it was made from.
        torch_git: hash that tree was built from.
        base: the real path of that tree's ``torch/``.
        reused: it was there already, made from the same patches and the same torch.
    """

    folder: Path
    topics: tuple[str, ...]
    series_digest: str
    torch: str
    torch_git: str
    base: str
    reused: bool = False

    @property
    def env(self) -> dict[str, str]:
        """What a process needs, beside the folder on its ``PYTHONPATH``, to keep bytecode apart."""
        return {"PYTHONPYCACHEPREFIX": str(self.folder / BYTECODE)}


def make_overlay(series: Series, tree: TorchTree, folder: Path) -> Overlay:
    """Make the overlay of ``series`` over ``tree`` in ``folder``, or leave it when it is there already.

    An earlier overlay in ``folder`` is replaced; anything else there is left alone.

    Raises:
        PatchDoesNotApply: when a hunk does not find its place; nothing is left behind.
        OverlayError: when torch is not of a version the patches are written for, or when ``folder`` holds something
            that is not an overlay.
    """
    for patch in series.patches:
        if tree.base not in patch.bases:
            raise OverlayError(
                f"{patch.topic} is written for torch {' and '.join(patch.bases)}, but {tree.package} is torch "
                f"{tree.version}; install that version, or see `uncuda series check --base DIR`"
            )
    folder = folder.absolute()
    wanted = Overlay(folder, series.topics, series.digest, tree.version, tree.git, str(tree.package.resolve()))
    _refuse_foreign(folder)
    if _read_stamp(folder) == _stamp(wanted):
        return Overlay(**{name: getattr(wanted, name) for name in wanted.__slots__ if name != "reused"}, reused=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Built aside and moved into place, so that an interrupted or refused build leaves no half overlay behind.
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as aside:
        built = Path(aside) / folder.name
        built.mkdir()
        touched = {name for patch in series.patches for name in patch.touched}
        _mirror(tree.package.resolve(), built / "torch", {name.removeprefix("torch/") for name in touched})
        _copy_touched(tree, built, touched)
        _apply(series, built)
        _copy_bytecode(tree, built, folder, touched)
        (built / STAMP).write_text(json.dumps(_stamp(wanted), indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        built.rename(folder)
    return wanted


def _stamp(overlay: Overlay) -> dict[str, object]:
    fields = {name: value for name, value in asdict(overlay).items() if name not in ("folder", "reused")}
    # The bytecode copies lie under the overlay's own path and fit one interpreter: both decide whether it is current.
    return {
        "schema": SCHEMA,
        **fields,
        "topics": list(overlay.topics),
        "folder": str(overlay.folder),
        "bytecode": sys.implementation.cache_tag,
    }


def _read_stamp(folder: Path) -> object:
    try:
        return json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _refuse_foreign(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise OverlayError(f"got {folder}, wanted a folder (or nothing there yet)")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / STAMP).is_file():
        raise OverlayError(f"{folder} is not empty and holds no {STAMP}: it is no overlay, so it is left as it is")


def _mirror(source: Path, target: Path, touched: set[str]) -> None:
    """Real folders and one symlink a file, without bytecode and without the touched files (relative to ``source``).

    A folder without Python and touched files below it (headers, libraries) becomes one symlink: nothing is ever written
    into it, and 9,000 of the 12,000 files are headers.
    """
    files: dict[str, list[str]] = {}
    folders: dict[str, list[str]] = {}
    real = {parent.as_posix() for name in touched for parent in Path(name).parents} | {"."}
    for here, below, names in os.walk(source):
        inside = os.path.relpath(here, source)
        below[:] = [name for name in below if name != "__pycache__"]
        folders[inside], files[inside] = list(below), names
        if any(name.endswith(".py") for name in names):
            real.update((inside, *(parent.as_posix() for parent in Path(inside).parents)))
    for inside in files:
        if inside not in real:
            continue
        there = target / inside
        there.mkdir(exist_ok=True)
        for name in folders[inside]:
            if os.path.normpath(f"{inside}/{name}") not in real:
                (there / name).symlink_to(source / inside / name, target_is_directory=True)
        for name in files[inside]:
            if not name.endswith(".pyc") and os.path.normpath(f"{inside}/{name}") not in touched:
                (there / name).symlink_to(source / inside / name)


def _copy_touched(tree: TorchTree, built: Path, touched: set[str]) -> None:
    """Make the touched files real; a file that a patch creates has nothing to copy."""
    for name in touched:
        source = tree.root / name
        if source.is_file():
            (built / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, built / name)


def _apply(series: Series, built: Path) -> None:
    for patch in series.patches:
        for file in patch.files:
            applied = git_apply(built, file)
            if not applied.ok:
                before = series.topics[: series.topics.index(patch.topic)]
                after = f" after {', '.join(before)}" if before else ""
                raise PatchDoesNotApply(f"{patch.topic}/{file.name} does not apply{after}: {applied.message}")


def _copy_bytecode(tree: TorchTree, built: Path, folder: Path, touched: set[str]) -> None:
    """Copy the bytecode of untouched files to where Python looks for it under this overlay's prefix.

    It is valid there: bytecode names the size and the time of its source, and the symlink shows those of the original.
    """
    suffix = f".{sys.implementation.cache_tag}.pyc"
    prefix = built / BYTECODE / str(folder).lstrip("/") / "torch"
    source = tree.package.resolve()
    for here, folders, _ in os.walk(source):
        if "__pycache__" not in folders:
            continue
        folders.remove("__pycache__")
        inside = Path(here).relative_to(source)
        (prefix / inside).mkdir(parents=True, exist_ok=True)
        with os.scandir(Path(here) / "__pycache__") as entries:
            for entry in entries:
                name = entry.name.removesuffix(suffix)
                if name != entry.name and f"torch/{(inside / name).as_posix()}.py" not in touched:
                    shutil.copyfile(entry.path, prefix / inside / entry.name)
