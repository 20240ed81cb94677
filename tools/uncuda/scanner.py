"""From a tree to findings: walk, prefilter, parse, rules; in parallel where that pays."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .context import Context
from .finding import Finding, Location, Verdict
from .project import Project
from .reading import WORDS, ReadError, Trouble, Unread, parse, read_bytes, walk
from .rule import all_rules
from .source import Source

_PARALLEL_FROM_BYTES = 2_000_000
_MESSAGES = {
    Trouble.SYNTAX: "does not parse",
    Trouble.ENCODING: "is not UTF-8",
    Trouble.HUGE: "is too large to judge",
    Trouble.LOOP: "is a loop of symbolic links",
    Trouble.GRAMMAR: "uses a grammar newer than this Python",
    Trouble.UNREADABLE: "cannot be read",
}


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan saw: findings in order of place, and the number of files walked and parsed."""

    findings: tuple[Finding, ...]
    files: int
    parsed: int


def scan(root: Path, base: Path | None = None, jobs: int | None = None) -> Scan:
    """Scan a folder or a file.

    Args:
        base: what paths are relative to; the root (or its folder) by default.
        jobs: processes; by default as many as there are CPUs, and one for a small tree.
    """
    findings: list[Finding] = []
    files: dict[str, bytes] = {}
    for item in walk(root, base):
        if isinstance(item, Unread):
            findings.append(unread_finding(item))
            continue
        relative, path = item
        try:
            files[relative] = read_bytes(relative, path)
        except ReadError as error:
            findings.append(unread_finding(error.unread))
    project = Project(files)
    names = sorted({table.dotted.rpartition(".")[2].encode() for table in project.tables.values() if not table.open})
    chosen = [path for path, data in files.items() if WORDS.search(data) or any(name in data for name in names)]
    findings += _run(project, chosen, jobs)
    findings.sort(key=lambda f: (f.location.path, f.location.line, f.code, f.location.end_line))
    return Scan(tuple(findings), len(files), len(chosen))


def _run(project: Project, paths: Sequence[str], jobs: int | None) -> Iterator[Finding]:
    size = sum(len(project.files[path]) for path in paths)
    count = jobs or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if size < _PARALLEL_FROM_BYTES or count < 2 or "fork" not in multiprocessing.get_all_start_methods():
        for path in paths:
            yield from scan_file(project, path)
        return
    # Largest first, so that no worker is left alone with a long one. The index is inherited through fork.
    global _shared
    _shared = project
    ordered = sorted(paths, key=lambda path: -len(project.files[path]))
    with multiprocessing.get_context("fork").Pool(count, initializer=gc.disable) as pool:
        for found in pool.imap_unordered(_scan_shared, ordered, chunksize=1):
            yield from found


_shared: Project | None = None


def _scan_shared(path: str) -> list[Finding]:
    assert _shared is not None
    return scan_file(_shared, path)


def scan_file(project: Project, path: str) -> list[Finding]:
    """Findings of one file of a project."""
    # A tree of many small objects: the collector would walk it again and again.
    enabled = gc.isenabled()
    gc.disable()
    try:
        data = project.files[path]
        source = Source(path, data, parse(path, data))
        context = Context(source, project)
        return [finding for rule in all_rules() for finding in rule.findings(context)]
    except ReadError as error:
        return [unread_finding(error.unread)]
    finally:
        if enabled:
            gc.enable()


def unread_finding(unread: Unread) -> Finding:
    """The finding that says why a file was not judged."""
    return Finding(
        Location(unread.path, unread.line, unread.line),
        unread.trouble.value,
        Verdict.REVIEW,
        1.0,
        (unread.detail,),
        f"the file {_MESSAGES[unread.trouble]}: {unread.detail}",
        "",
        "",
    )
