"""``run``: run cases and end with a summary."""

from __future__ import annotations

import argparse

from ..running import Request
from ..running import run as run_request
from .options import rerun_command, selection_of, spec_of


def run(options: argparse.Namespace) -> int:
    """Run the selected cases; the exit code says whether all is as expected."""
    rerun = rerun_command(options)
    results = run_request(
        Request(
            spec=spec_of(options),
            selection=selection_of(options),
            workers=options.workers,
            out=options.out,
            resume=options.resume,
            seed=options.seed,
            faults=tuple(options.fault),
            command=("torch-conformance", *options.words),
            rerun=rerun,
        )
    )
    if options.json:
        from ..run_record import write_text

        print(write_text(results.run), end="")
    else:
        from ..report.terminal import console, print_summary

        print_summary(results, console(), rerun)
    return results.run.exit_code
