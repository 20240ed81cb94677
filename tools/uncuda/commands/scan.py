"""`uncuda scan`: find CUDA assumptions in a tree, or in the installed torch (which is not imported)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..finding_json import to_json
from ..finding_text import print_text
from ..place import PlaceError, locate
from ..rule import all_rules
from ..scanner import scan

NAME = "scan"
HELP = "find CUDA assumptions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "path", nargs="?", default=".", metavar="PATH|torch", help="a folder or file; `torch`: the installed one"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--verdict", choices=("defect", "review"), help="only findings with this verdict")
    parser.add_argument("--code", action="append", metavar="CODE", help="only this rule (may be given again)")
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help="processes; default: as many as CPUs")


def run(args: argparse.Namespace) -> int:
    """Scan and print.

    Returns:
        1 when a defect is among the findings, 0 when none is, 2 for wrong usage.
    """
    codes = {code.upper() for code in args.code or ()}
    known = {rule.code for rule in all_rules()}
    if unknown := sorted(code for code in codes if code not in known and not code.startswith("U9")):
        print(f"uncuda scan: no rule has the code {unknown[0]}; `uncuda explain` lists them", file=sys.stderr)
        return 2
    try:
        root, base = locate(args.path)
    except PlaceError as error:
        print(f"uncuda scan: {error}", file=sys.stderr)
        return 2
    result = scan(root, base, args.jobs)
    findings = [
        finding
        for finding in result.findings
        if (not codes or finding.code in codes) and args.verdict in (None, finding.verdict.value)
    ]
    if args.format == "json":
        print(to_json(findings))
    else:
        print_text(findings, result, Path(args.path))
    return int(any(finding.verdict.value == "defect" for finding in findings))
