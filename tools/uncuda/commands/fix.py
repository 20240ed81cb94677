"""`uncuda fix`: show or write the rewrites of what scan finds."""

from __future__ import annotations

import argparse
import difflib
import sys

from ..place import PlaceError, locate
from ..project import Project
from ..reading import WORDS, ReadError, Unread, read_bytes, walk
from ..rewriting import Rewritten, rewrite_all, write_atomically

NAME = "fix"
HELP = "rewrite what can be rewritten"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("path", metavar="PATH", help="a folder or file")
    parser.add_argument(
        "--unsafe", action="store_true", help="also rewrites that change behaviour somewhere (see explain)"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--diff", action="store_true", help="show a diff and write nothing (the default)")
    action.add_argument("--write", action="store_true", help="write the files that change")


def run(args: argparse.Namespace) -> int:
    """Rewrite and print or write.

    Returns:
        0 when nothing is left to rewrite (after --write, or because nothing changes), 1 when a diff was shown,
        2 for wrong usage.
    """
    try:
        root, base = locate(args.path)
    except PlaceError as error:
        print(f"uncuda fix: {error}", file=sys.stderr)
        return 2
    files, places = {}, {}
    for item in walk(root, base):
        if isinstance(item, Unread):
            print(f"uncuda fix: {item.path}: {item.detail}; left alone", file=sys.stderr)
            continue
        try:
            files[item[0]] = read_bytes(*item)
        except ReadError as error:
            print(f"uncuda fix: {item[0]}: {error}; left alone", file=sys.stderr)
            continue
        places[item[0]] = item[1]
    project = Project(files)
    changed = 0
    for path, data in files.items():
        if not WORDS.search(data):
            continue
        result = rewrite_all(project, path, args.unsafe)
        if result is None:
            continue
        changed += 1
        if args.write:
            write_atomically(places[path], result.after)
            print(f"{path}: {len(result.applied)} rewrites")
        else:
            sys.stdout.write(diff(result))
    if args.write or not changed:
        print(f"{changed} files changed", file=sys.stderr)
        return 0
    print(f"{changed} files would change; --write changes them", file=sys.stderr)
    return 1


def diff(result: Rewritten) -> str:
    """A unified diff that `git apply` and `patch -p1` take."""
    before = result.before.decode("utf-8").splitlines(keepends=True)
    after = result.after.decode("utf-8").splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, f"a/{result.path}", f"b/{result.path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
