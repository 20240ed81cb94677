"""`uncuda explain`: what a code means, why it matters, what to write instead; a list without a code."""

from __future__ import annotations

import argparse
import sys

from ..rule import all_rules
from ..rule_text import as_line, as_markdown, as_text, trouble_text

NAME = "explain"
HELP = "what a code means"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("code", nargs="?", metavar="CODE", help="default: list all codes")
    parser.add_argument("--all", action="store_true", help="every rule in full")
    parser.add_argument("--format", choices=("text", "md"), default="text")


def run(args: argparse.Namespace) -> int:
    """Print the words of one rule or of all.

    Returns:
        0, or 2 for an unknown code.
    """
    rules = all_rules()
    if args.code:
        code = args.code.upper()
        if text := trouble_text(code):
            print(text)
            return 0
        rules = tuple(rule for rule in rules if rule.code == code)
        if not rules:
            print(f"uncuda explain: no rule has the code {args.code}; `uncuda explain` lists them", file=sys.stderr)
            return 2
    if args.format == "md":
        print(as_markdown(rules), end="")
    elif args.code or args.all:
        print("\n\n".join(as_text(rule) for rule in rules))
    else:
        print("\n".join(as_line(rule) for rule in rules))
    return 0
