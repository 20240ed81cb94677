"""Findings for people: grouped by file, coloured on a terminal unless NO_COLOR is set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.text import Text

from .finding import Finding, Verdict
from .scanner import Scan

_STYLE = {Verdict.DEFECT: "bold red", Verdict.REVIEW: "yellow"}


def print_text(findings: Sequence[Finding], scan: Scan, root: Path) -> None:
    """Print findings file by file, then one line of counts."""
    console = Console(highlight=False, soft_wrap=True)
    for path, group in groupby(findings, key=lambda finding: finding.location.path):
        console.print(Text(path, style="bold"))
        for finding in group:
            line = Text(f"  {finding.location.line:>6}  ")
            line.append(f"{finding.code} {finding.verdict.value:6}", style=_STYLE[finding.verdict])
            line.append(f" {finding.confidence:.2f}  {finding.message}")
            console.print(line)
            reason = "; ".join(finding.reasons)
            console.print(Text(f"          because {reason}", style="dim"))
            if finding.rewrite is not None and finding.verdict is Verdict.DEFECT:
                console.print(
                    Text(f"          cure ({finding.rewrite.level.value}): {finding.rewrite.summary}", style="dim")
                )
    defects = sum(finding.verdict is Verdict.DEFECT for finding in findings)
    console.print(
        f"{defects} defects, {len(findings) - defects} to review; {scan.files} files under {root}, {scan.parsed} parsed"
    )
