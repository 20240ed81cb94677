"""What the finder says: a place, a verdict, a confidence with its reasons, and a rewrite where one exists."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum


class Verdict(str, Enum):
    """DEFECT breaks on a device that is not CUDA; REVIEW needs a person who knows the code."""

    DEFECT = "defect"
    REVIEW = "review"


class Level(str, Enum):
    """How far a rewrite may be trusted.

    SAFE keeps what CUDA users see; UNSAFE changes behaviour somewhere (its note says where); DISPLAY is only shown.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@dataclass(frozen=True, slots=True)
class Location:
    """Lines of one file, 1-based and inclusive; the path is relative to the scanned tree, with forward slashes."""

    path: str
    line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes ``[start, end)`` of a file by ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Edits that belong together: all of them are applied, or none.

    Attributes:
        imports: modules that the new text needs (``torch``), added when the file lacks them.
        summary: the cure in one line.
        note: why the level is what it is.
    """

    level: Level
    summary: str
    note: str
    edits: tuple[Edit, ...] = ()
    imports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that takes the device to be CUDA.

    Attributes:
        code: the rule (``U001``).
        confidence: 0 to 1, that the verdict is right.
        reasons: what the verdict rests on, most telling first.
        text: the source of the place with white space normalised.
        scope: the dotted enclosing classes and functions; empty at module level.
    """

    location: Location
    code: str
    verdict: Verdict
    confidence: float
    reasons: tuple[str, ...]
    message: str
    text: str
    scope: str
    rewrite: Rewrite | None = None

    @property
    def fingerprint(self) -> str:
        """An id without line numbers, so that baselines and evidence survive edits elsewhere in the file."""
        parts = "\0".join((self.location.path, self.code, self.text, self.scope))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:16]
