"""The series: the topics of ``patches/`` in the order of its ``order`` file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .patch import Patch, load_patch

ORDER = "order"


class SeriesError(Exception):
    """A series whose order file and folders do not agree, or a topic that it does not have."""


@dataclass(frozen=True, slots=True)
class Series:
    """Patches in the order in which they apply.

    Attributes:
        root: the folder that holds ``order`` and the topic folders.
        patches: all of them, or a selection in the same order.
    """

    root: Path
    patches: tuple[Patch, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """Topic names in order."""
        return tuple(patch.topic for patch in self.patches)

    @property
    def digest(self) -> str:
        """Changes when a patch, a topic's cases, the order or the set of topics changes."""
        state = hashlib.sha256()
        for patch in self.patches:
            state.update(f"{patch.topic}\0{patch.digest}\0".encode())
        return state.hexdigest()

    def select(self, topics: Sequence[str]) -> Series:
        """The part of the series with these topics, in the order of the series.

        Raises:
            SeriesError: when a topic is not in the series.
        """
        unknown = [topic for topic in topics if topic not in self.topics]
        if unknown:
            raise SeriesError(f"got the topic {unknown[0]!r}, wanted one of {', '.join(self.topics)}")
        return Series(self.root, tuple(patch for patch in self.patches if patch.topic in topics))


def load_series(root: Path) -> Series:
    """Read ``root/order`` and every topic folder that it names.

    Raises:
        SeriesError: when a line names no folder, is there twice, or a folder is not in the order file.
        PatchError: when a topic is not well formed.
    """
    order = root / ORDER
    try:
        lines = order.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SeriesError(f"got {root}, wanted a folder with an {ORDER!r} file, one topic a line: {error}") from error
    topics = [text for line in lines if (text := line.partition("#")[0].strip())]
    twice = sorted({topic for topic in topics if topics.count(topic) > 1})
    if twice:
        raise SeriesError(f"{order}: {twice[0]!r} is there twice")
    folders = {path.parent.name for path in root.glob("*/topic.toml")}
    missing = [topic for topic in topics if topic not in folders]
    if missing:
        raise SeriesError(f"{order}: {missing[0]!r} has no folder with a topic.toml beside it")
    forgotten = sorted(folders - set(topics))
    if forgotten:
        raise SeriesError(f"{order}: the folder {forgotten[0]!r} is not listed; add a line where it should apply")
    return Series(root, tuple(load_patch(root / topic) for topic in topics))


def default_root() -> Path:
    """``patches/`` of the current folder, else of the checkout that this package runs from."""
    here = Path.cwd() / "patches"
    return here if (here / ORDER).is_file() else Path(__file__).resolve().parents[2] / "patches"
