"""`uncuda series`: list, check, export and apply the patch series."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..applicability import Applicability, Fit, check_series
from ..evidence import Standing, standing
from ..export import ExportError, export_mailbox, export_patches
from ..overlay import OverlayError, PatchDoesNotApply, make_overlay
from ..patch import PatchError
from ..series import Series, SeriesError, default_root, load_series
from ..tree import TorchTree, TreeError, installed_tree, read_tree

NAME = "series"
HELP = "list, check, export and apply the patch series"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    listed = actions.add_parser("list", help="topics in order, with their status and evidence")
    listed.add_argument("--json", action="store_true", help="write JSON")
    check = actions.add_parser("check", help="does every patch apply, and is its evidence current?")
    check.add_argument(
        "--base",
        metavar="DIR",
        type=Path,
        action="append",
        help="a torch tree to check against (may be given again); default: the installed torch",
    )
    check.add_argument("--json", action="store_true", help="write JSON")
    export = actions.add_parser("export", help="write the patches for a person to review and send")
    export.add_argument("topics", metavar="TOPIC", nargs="*", help="default: the whole series")
    export.add_argument("--out", metavar="DIR", type=Path, required=True, help="where to write")
    export.add_argument("--mbox", action="store_true", help="one mailbox for `git am` instead of patch files")
    export.add_argument("--author", metavar="'NAME <MAIL>'", default="", help="who answers for them (--mbox)")
    apply = actions.add_parser("apply", help="make a patched torch to put first on PYTHONPATH")
    apply.add_argument("topics", metavar="TOPIC", nargs="*")
    apply.add_argument("--all", action="store_true", help="the whole series")
    apply.add_argument("--overlay", metavar="DIR", type=Path, required=True, help="where the patched torch goes")
    apply.add_argument("--base", metavar="DIR", type=Path, help="the torch tree; default: the installed torch")
    for action in (listed, check, export, apply):
        action.add_argument("--patches", metavar="DIR", type=Path, default=None, help="the series; default: patches/")


def run(args: argparse.Namespace) -> int:
    """Run one action.

    Returns:
        0 as expected, 1 when something does not apply or is not proven, 2 for wrong usage.
    """
    actions = {"list": _list, "check": _check, "export": _export, "apply": _apply}
    try:
        return actions[args.action](load_series(args.patches or default_root()), args)
    except PatchDoesNotApply as error:
        print(f"uncuda series {args.action}: {error}", file=sys.stderr)
        return 1
    except (SeriesError, PatchError, TreeError, ExportError, OverlayError) as error:
        print(f"uncuda series {args.action}: {error}", file=sys.stderr)
        return 2


def _list(series: Series, args: argparse.Namespace) -> int:
    rows = [
        {
            "topic": patch.topic,
            "title": patch.title,
            "status": patch.status,
            "taxonomy": list(patch.taxonomy),
            "findings": list(patch.findings),
            "bases": list(patch.bases),
            "files": list(patch.touched),
            "cases": list(patch.cases),
            "evidence": standing(patch, series)[0].value,
        }
        for patch in series.patches
    ]
    if args.json:
        print(json.dumps({"schema": 1, "series_digest": series.digest, "topics": rows}, indent=2))
        return 0
    width = max((len(patch.topic) for patch in series.patches), default=0)
    for row in rows:
        kinds = ",".join(row["taxonomy"])
        print(f"{row['topic']:{width}}  {kinds:6}  {row['status']:9}  evidence {row['evidence']:14}  {row['title']}")
    print(f"{len(rows)} topics, series {series.digest[:16]}")
    return 0


def _check(series: Series, args: argparse.Namespace) -> int:
    trees = [read_tree(path) for path in args.base] if args.base else [installed_tree()]
    fits = [(tree, check_series(series, tree)) for tree in trees]
    proofs = {patch.topic: standing(patch, series) for patch in series.patches}
    fails = any(_is_bad(item) for _, items in fits for item in items)
    fails = fails or any(kind is not Standing.CURRENT for kind, _ in proofs.values())
    if args.json:
        print(json.dumps(_check_json(series, fits, proofs), indent=2))
        return int(fails)
    width = max((len(patch.topic) for patch in series.patches), default=0)
    for tree, items in fits:
        print(f"torch {tree.version} at {tree.package}")
        for item in items:
            together = "" if item.in_series is item.alone else f"; in the series: {item.in_series.value}"
            detail = f" ({item.detail})" if item.detail else ""
            print(f"  {item.topic:{width}}  {item.alone.value}{together}{detail}")
    print("evidence")
    for topic, (kind, why) in proofs.items():
        print(f"  {topic:{width}}  {kind.value}{f': {why}' if why else ''}")
    return int(fails)


def _is_bad(item: Applicability) -> bool:
    return Fit.CONFLICTS in (item.alone, item.in_series)


def _check_json(
    series: Series,
    fits: list[tuple[TorchTree, list[Applicability]]],
    proofs: dict[str, tuple[Standing, str]],
) -> dict[str, object]:
    return {
        "schema": 1,
        "series_digest": series.digest,
        "bases": [
            {
                "torch": tree.version,
                "topics": [
                    {
                        "topic": item.topic,
                        "alone": item.alone.value,
                        "in_series": item.in_series.value,
                        "detail": item.detail,
                    }
                    for item in items
                ],
            }
            for tree, items in fits
        ],
        "evidence": {topic: {"standing": kind.value, "why": why} for topic, (kind, why) in proofs.items()},
    }


def _export(series: Series, args: argparse.Namespace) -> int:
    chosen = series.select(args.topics) if args.topics else series
    written = export_mailbox(chosen, args.out, args.author) if args.mbox else export_patches(chosen, args.out)
    for path in written:
        print(path)
    print(
        "These are prepared for a person to review and send. Read each topic's cover.md first and disclose the AI "
        "assistance; PyTorch refuses contributions by fully autonomous agents.",
        file=sys.stderr,
    )
    return 0


def _apply(series: Series, args: argparse.Namespace) -> int:
    if bool(args.topics) == args.all:
        print("uncuda series apply: name topics, or --all for the whole series", file=sys.stderr)
        return 2
    tree = read_tree(args.base) if args.base else installed_tree()
    overlay = make_overlay(series if args.all else series.select(args.topics), tree, args.overlay)
    made = "is there already" if overlay.reused else "made"
    print(f"{overlay.folder}: torch {overlay.torch} with {', '.join(overlay.topics)} ({made})")
    env = " ".join(f"{name}={value}" for name, value in overlay.env.items())
    print(f"use it: PYTHONPATH={overlay.folder} {env} python ...")
    return 0
