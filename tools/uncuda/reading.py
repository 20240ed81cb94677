"""Walk a tree and read its files; what cannot be read is a fact, not an abort."""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

MAX_BYTES = 8 * 1024 * 1024
_SKIPPED_FOLDERS = {"__pycache__", ".git", ".hg", ".svn", ".venv", "venv", "node_modules", ".mypy_cache", ".tox"}
# Not "cuda" alone: the implicit entry points and the gates without CUDA do not contain the word.
WORDS = re.compile(
    rb"cuda|CUDA|(?:is|set)_autocast_enabled\(|autocast_gpu|[\"']privateuse|[\"'](?:xpu|mps|hpu|mtia|npu)[\"']|DeviceType\."
)


class Trouble(Enum):
    """Why a file could not be judged; the value is the code of the finding that says so."""

    SYNTAX = "U901"
    ENCODING = "U902"
    HUGE = "U903"
    LOOP = "U904"
    GRAMMAR = "U905"
    UNREADABLE = "U906"


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that could not be judged, and why."""

    path: str
    trouble: Trouble
    detail: str
    line: int = 1


class ReadError(Exception):
    """Carries an :class:`Unread` out of reading."""

    def __init__(self, unread: Unread) -> None:
        super().__init__(unread.detail)
        self.unread = unread


def walk(root: Path, base: Path | None = None) -> Iterator[tuple[str, Path] | Unread]:
    """Python files under a folder (or one file), in order of path; each real folder is visited once.

    Yields:
        (path relative to ``base`` or the root, absolute path), or an :class:`Unread` for a symlink loop.
    """
    base = base or (root.parent if root.is_file() else root)
    if root.is_file():
        yield root.relative_to(base).as_posix(), root
        return
    stack: list[tuple[Path, frozenset[str]]] = [(root, frozenset({os.path.realpath(root)}))]
    while stack:
        folder, seen = stack.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield Unread(folder.relative_to(base).as_posix(), Trouble.UNREADABLE, str(error.strerror))
            continue
        for entry in entries:
            path = Path(entry.path)
            relative = path.relative_to(base).as_posix()
            if entry.name in _SKIPPED_FOLDERS:
                continue
            try:
                folder_like = entry.is_dir()
                if entry.is_symlink() and not path.exists():
                    path.stat()
            except OSError as error:
                if entry.name.endswith(".py") or "symbolic links" in str(error.strerror):
                    kind = Trouble.LOOP if "symbolic links" in str(error.strerror) else Trouble.UNREADABLE
                    yield Unread(relative, kind, str(error.strerror))
                continue
            if folder_like:
                real = os.path.realpath(path)
                if real in seen:
                    yield Unread(relative, Trouble.LOOP, "the link leads back to a folder above it")
                else:
                    stack.append((path, seen | {real}))
            elif entry.name.endswith(".py"):
                yield relative, path


def read_bytes(relative: str, path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        ReadError: it cannot be opened, or is larger than MAX_BYTES.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ReadError(Unread(relative, Trouble.HUGE, f"{size} bytes, the limit is {MAX_BYTES}"))
        return path.read_bytes()
    except OSError as error:
        raise ReadError(Unread(relative, Trouble.UNREADABLE, str(error.strerror))) from error


def parse(relative: str, data: bytes) -> ast.Module:
    """The syntax tree of UTF-8 source.

    Raises:
        ReadError: another encoding, a syntax error, or a grammar that this interpreter does not know.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        data.decode("utf-8")
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ReadError(Unread(relative, Trouble.ENCODING, f"not UTF-8: {error}")) from error
    if encoding not in ("utf-8", "utf-8-sig"):
        raise ReadError(
            Unread(relative, Trouble.ENCODING, f"declares the encoding {encoding}; edits count UTF-8 bytes")
        )
    try:
        with warnings.catch_warnings():
            # Invalid escapes in someone else's strings are not our message.
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        kind = Trouble.GRAMMAR if _newer_grammar(data, line) else Trouble.SYNTAX
        raise ReadError(Unread(relative, kind, str(error), line)) from error


# Statements that began after Python 3.10 and cannot be read by an older parser.
_NEWER = re.compile(
    rb"^\s*(?:type\s+\w+\s*(?:\[.*\])?\s*=|(?:async\s+)?def\s+\w+\[|class\s+\w+\[|except\s*\*|match\s+.+:\s*$"
    rb"|except\s+\w[\w.]*\s*,\s*\w)|=\s*t[\"']|\bt\"",
)


def _newer_grammar(data: bytes, line: int) -> bool:
    lines = data.splitlines()
    nearby = lines[max(line - 2, 0) : line + 1]
    return any(_NEWER.search(text) for text in nearby)
