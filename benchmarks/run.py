"""Run the benchmarks: ``python benchmarks/run.py [NAME ...] [--quick] [--out FOLDER] [--check]``.

Each prints a table and leaves a JSON file and a plot. Figures of a busy machine are shown, not judged: look at the
control beside them. With ``--check`` a median above its limit is exit code 1.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from result import Benchmark, show, write

NAMES = ("device_overhead", "activate_time")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the named benchmarks; return the exit code."""
    parser = argparse.ArgumentParser(
        description="Ratios taken in one run, each with its control and its plot.",
        epilog="Exit codes: 0 measured, 1 a median is above its limit (--check), 2 wrong usage, 3 no usable build.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="few turns: see that it works, do not trust the figures")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"), help="default: %(default)s")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a median is above its limit")
    arguments = parser.parse_args(argv)
    unknown = sorted(set(arguments.names) - set(NAMES))
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")

    from neuron_ref import NeuronRefError, stamp

    try:
        stamp.check()
    except NeuronRefError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    exceeded = False
    for name in arguments.names or NAMES:
        benchmark: Benchmark = importlib.import_module(name).measure(quick=arguments.quick)
        show(benchmark)
        print("wrote " + " and ".join(str(path) for path in write(benchmark, arguments.out)) + "\n")
        exceeded = exceeded or bool(benchmark.exceeded())
    return 1 if exceeded and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
