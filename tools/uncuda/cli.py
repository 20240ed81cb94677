"""The command `uncuda`: finds CUDA assumptions in Python code, rewrites them, and proves patches against PyTorch.

A subcommand is a module in ``uncuda/commands`` with NAME, HELP, add_arguments(parser) and run(args).
Nothing else has to be edited.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

from . import commands

_EPILOG = """\
Exit codes: 0 as expected; 1 findings or regressions; 2 wrong usage; 3 a backend could not be started.

Examples:
  uncuda scan torch                   the torch of this environment, which is not imported
  uncuda scan src --format json       for programs
  uncuda explain U001                 what a code means, why it matters, what to write instead
  uncuda fix src --diff               what the safe rewrites would change
"""


def load_commands() -> list[ModuleType]:
    """Every module of the commands package, in order of name."""
    names = sorted(info.name for info in pkgutil.iter_modules(commands.__path__))
    return [importlib.import_module(f"{commands.__name__}.{name}") for name in names]


def make_parser() -> argparse.ArgumentParser:
    """The parser with every subcommand."""
    parser = argparse.ArgumentParser(
        prog="uncuda",
        description="Find and rewrite code that assumes CUDA where any accelerator would do.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for module in load_commands():
        sub = subparsers.add_parser(module.NAME, help=module.HELP, description=module.__doc__)
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit code (see the end of ``uncuda --help``).
    """
    args = make_parser().parse_args(argv)
    try:
        return int(args.run(args))
    except BrokenPipeError:
        # The reader (head, a pager) went away: what it read was right.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("uncuda: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
