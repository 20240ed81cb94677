"""Scan sources that a test holds in strings."""

from __future__ import annotations

from uncuda.finding import Finding, Verdict
from uncuda.project import Project
from uncuda.scanner import scan_file


def findings(code: str, **others: str) -> list[Finding]:
    """Findings of ``code`` as ``package/module.py`` in a project with other modules ``package/<name>.py``."""
    files = {"package/module.py": code.encode()} | {
        f"package/{name}.py": text.encode() for name, text in others.items()
    }
    return scan_file(Project(files), "package/module.py")


def verdicts(code: str, **others: str) -> set[tuple[str, str]]:
    """Pairs of code and verdict."""
    return {(finding.code, finding.verdict.value) for finding in findings(code, **others)}


def defect_lines(code: str, **others: str) -> set[int]:
    """First lines of the defects."""
    return {f.location.line for f in findings(code, **others) if f.verdict is Verdict.DEFECT}
