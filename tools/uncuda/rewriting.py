"""Apply rewrites: byte ranges, never overlapping, imports added, and only what still parses is kept."""

from __future__ import annotations

import ast
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .finding import Edit, Finding, Level
from .project import Project
from .reading import ReadError, parse
from .scanner import scan_file
from .source import Source


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file after its rewrites: the new bytes, and the findings whose rewrites went in."""

    path: str
    before: bytes
    after: bytes
    applied: tuple[Finding, ...]


def rewrite_file(path: str, data: bytes, findings: Sequence[Finding], unsafe: bool) -> Rewritten | None:
    """Apply the rewrites of one file's findings; None when nothing changes.

    A rewrite goes in as a whole or not at all. When two overlap, the one whose edits come first in order of code and
    place wins, unless their shared edits are the same. A result that does not parse is given up.
    """
    taken: list[Edit] = []
    applied: list[Finding] = []
    imports: set[str] = set()
    for finding in findings:
        rewrite = finding.rewrite
        if rewrite is None or not rewrite.edits or not _allowed(rewrite.level, unsafe):
            continue
        if all(edit in taken or not _overlaps(edit, taken) for edit in rewrite.edits):
            taken += [edit for edit in rewrite.edits if edit not in taken]
            applied.append(finding)
            imports |= set(rewrite.imports)
    if not taken:
        return None
    source = Source(path, data, parse(path, data))
    taken += _import_edits(source, imports)
    after = apply_edits(data, taken)
    try:
        parse(path, after)
    except ReadError:
        return None
    return Rewritten(path, data, after, tuple(applied)) if after != data else None


def rewrite_all(project: Project, path: str, unsafe: bool, rounds: int = 4) -> Rewritten | None:
    """Scan and rewrite one file until nothing more changes, so that a second run changes nothing."""
    original = project.files[path]
    current = original
    applied: list[Finding] = []
    for _ in range(rounds):
        view = project if current is original else project.with_file(path, current)
        try:
            step = rewrite_file(path, current, scan_file(view, path), unsafe)
        except ReadError:
            break
        if step is None:
            break
        current = step.after
        applied += step.applied
    return Rewritten(path, original, current, tuple(applied)) if current != original else None


def apply_edits(data: bytes, edits: Sequence[Edit]) -> bytes:
    """The bytes with every edit made; edits must not overlap."""
    parts: list[bytes] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < position:
            raise ValueError(f"edits overlap at byte {edit.start}")
        parts += [data[position : edit.start], edit.text.encode()]
        position = edit.end
    return b"".join([*parts, data[position:]])


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content in one step, keeping its mode; a reader sees the old or the new file, never half.

    A symlink keeps pointing where it did: its target is replaced.
    """
    target = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(target.stat().st_mode & 0o7777)
        Path(name).replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _allowed(level: Level, unsafe: bool) -> bool:
    return level is Level.SAFE or (unsafe and level is Level.UNSAFE)


def _overlaps(edit: Edit, taken: Sequence[Edit]) -> bool:
    # Two insertions at one place have no order of their own: that counts as an overlap.
    return any((edit.start < other.end and other.start < edit.end) or edit.start == other.start for other in taken)


def _import_edits(source: Source, modules: set[str]) -> list[Edit]:
    missing = sorted(module for module in modules if source.imports.get(module) != module)
    if not missing:
        return []
    line = _import_line(source.tree)
    offset = source.offset(line, 0) if line <= source.data.count(b"\n") + 1 else len(source.data)
    newline = "\r\n" if b"\r\n" in source.data[:2000] else "\n"
    return [Edit(offset, offset, "".join(f"import {module}{newline}" for module in missing))]


def _import_line(tree: ast.Module) -> int:
    """The line before which an import may stand: after the docstring and the __future__ imports."""
    line = 1
    for statement in tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (docstring or future):
            return (
                statement.lineno if isinstance(statement, (ast.Import, ast.ImportFrom)) else max(line, statement.lineno)
            )
        line = (statement.end_lineno or statement.lineno) + 1
    return line
