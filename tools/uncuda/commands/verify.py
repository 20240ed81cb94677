"""`uncuda verify`: prove patches by running their cases before and after."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

from ..evidence import Proof, write_evidence
from ..overlay import OverlayError, PatchDoesNotApply
from ..patch import PatchError
from ..series import Series, SeriesError, default_root, load_series
from ..tree import TreeError

NAME = "verify"
HELP = "prove patches: their cases before and after, on a device and on the CPU"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("topics", metavar="TOPIC", nargs="*", help="default: every topic of the series")
    parser.add_argument("--backend", metavar="NAME|SPEC", required=True, help="as torch-conformance takes it")
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument(
        "--quick", action="store_true", help="only the families of the named cases; writes no evidence.json"
    )
    parser.add_argument("--patches", metavar="DIR", type=Path, default=None, help="the series; default: patches/")
    parser.add_argument(
        "--overlays",
        metavar="DIR",
        type=Path,
        default=None,
        help="where patched trees are kept; default: a cache folder",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command.

    Returns:
        0 when every patch is proven, 1 when one is not, 2 for wrong usage, 3 when the backend does not start.
    """
    # Only here: the other commands must work where the conformance suite is not installed.
    from ..verify import VerifyError, verify

    try:
        series = load_series(args.patches or default_root())
        topics = args.topics or list(series.topics)
        command = shlex.join(["uncuda", "verify", *args.topics, "--backend", args.backend])
        proofs = verify(
            series,
            topics,
            args.backend,
            args.overlays or _cache(),
            command,
            say=lambda text: print(text, file=sys.stderr),
            quick=args.quick,
        )
    except VerifyError as error:
        print(f"uncuda verify: {error}", file=sys.stderr)
        return error.exit_code
    except PatchDoesNotApply as error:
        print(f"uncuda verify: {error}", file=sys.stderr)
        return 1
    except (SeriesError, PatchError, TreeError, OverlayError) as error:
        print(f"uncuda verify: {error}", file=sys.stderr)
        return 2
    for proof in proofs:
        if not proof.problems and not args.quick:
            write_evidence(proof.evidence, series.root / proof.topic)
    if args.json:
        print(json.dumps(_as_json(series, proofs), indent=2))
    else:
        _print(proofs)
    return int(any(proof.problems for proof in proofs))


def _as_json(series: Series, proofs: list[Proof]) -> dict[str, object]:
    return {
        "schema": 1,
        "series_digest": series.digest,
        "proven": not any(proof.problems for proof in proofs),
        "topics": [
            {"proven": not proof.problems, "problems": list(proof.problems), **asdict(proof.evidence)}
            for proof in proofs
        ],
    }


def _print(proofs: list[Proof]) -> None:
    width = max((len(case.id) for proof in proofs for case in proof.evidence.devices[0].cases), default=0)
    print(f"{'case':{width}}  {'before':10}  {'alone':10}  series")
    for proof in proofs:
        print(f"{proof.topic}: {'NOT PROVEN' if proof.problems else 'proven'}")
        for case in proof.evidence.devices[0].cases:
            print(f"{case.id:{width}}  {case.before:10}  {case.alone:10}  {case.series}")
        for problem in proof.problems:
            print(f"    {problem}")
    proven = sum(not proof.problems for proof in proofs)
    print(f"{proven} of {len(proofs)} patches proven")
    for device in proofs[0].evidence.devices if proofs else ():
        print(f"{device.backend}: {device.guarded} other cases run; build {device.build or '-'}")


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(root) / "uncuda" / "overlays"
