"""Digests that say whether two runs could differ: of the suite's sources, of a backend's module, of an overlay."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

SHORT = 16
"""Hexadecimal digits that we keep: enough to tell apart, short enough to read."""
OVERLAY_FILE = "overlay.json"
"""Names the series that an overlay of torch was made from; it lies in the folder that is put on PYTHONPATH."""


def of_texts(parts: Iterable[str]) -> str:
    """A digest of texts, order included."""
    out = hashlib.sha256()
    for part in parts:
        out.update(part.encode())
        out.update(b"\0")
    return out.hexdigest()[:SHORT]


@functools.cache
def of_suite() -> str:
    """A digest of all sources of this package: what decides which cases exist and how they are judged."""
    root = Path(__file__).parent
    out = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        out.update(str(file.relative_to(root)).encode() + b"\0")
        out.update(file.read_bytes())
    return out.hexdigest()[:SHORT]


def of_folder(folder: Path) -> str:
    """A digest of a backend's module: its sources by content, its compiled parts by size and time.

    Large libraries are not read: this runs on the path of every command.
    """
    out = hashlib.sha256()
    files = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    for file in files:
        if file.suffix not in (".py", ".toml", ".so", ".json") or "__pycache__" in file.parts:
            continue
        out.update(str(file.relative_to(folder.parent)).encode() + b"\0")
        if file.suffix == ".so":
            status = file.stat()
            out.update(f"{status.st_size} {status.st_mtime_ns}".encode())
        else:
            out.update(file.read_bytes())
    return out.hexdigest()[:SHORT]


def of_overlays(path: Iterable[str]) -> str:
    """A digest of the overlays among the entries of ``path``; empty when none is one."""
    parts = []
    for entry in path:
        file = Path(entry) / OVERLAY_FILE
        if file.is_file():
            parts.append(file.read_text(encoding="utf-8"))
    return of_texts(parts) if parts else ""
