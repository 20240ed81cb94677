"""The command ``torch-conformance``.

Only what a command needs is imported: `list` of a cached plan must answer in half a second.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .case import PROFILES
from .errors import EXIT_FINDINGS, ConformanceError

PROGRAM = "torch-conformance"
_EPILOG = """\
exit codes:
  0  as expected
  1  regressions, unexpected passes, a broken expectation, or an interrupted run
  2  wrong usage: an unknown name, a broken file, a folder that cannot be used
  3  the backend could not be started

examples:
  torch-conformance backends
  torch-conformance run --backend cpu --profile smoke -n 2
  torch-conformance run --backend my_spec.toml --family op --op add --dtype float32 --profile full
  torch-conformance show --kind CRASHED
  torch-conformance compare runs/before runs/after
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `argparse` itself exits with 2 on wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    options = _parser().parse_args(words)
    options.words = words
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except ConformanceError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return EXIT_FINDINGS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="A conformance suite for PyTorch devices.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _backends(commands)
    _probe(commands)
    _list(commands)
    _run(commands)
    _show(commands)
    _compare(commands)
    _expect(commands)
    _report(commands)
    return parser


_Commands = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _add(commands: _Commands, name: str, text: str, example: str) -> argparse.ArgumentParser:  # type: ignore[valid-type]
    return commands.add_parser(  # type: ignore[attr-defined, no-any-return]
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=f"example:\n  {PROGRAM} {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _backends(commands: _Commands) -> None:  # type: ignore[valid-type]
    parser = _add(commands, "backends", "list the backends that can be named", "backends --json")
    _json(parser)
    parser.set_defaults(command=_lazy("inspect_backend", "backends"))


def _probe(commands: _Commands) -> None:  # type: ignore[valid-type]
    parser = _add(commands, "probe", "start a backend and say what it can do", "probe --backend cpu")
    _backend(parser)
    _json(parser)
    parser.set_defaults(command=_lazy("inspect_backend", "probe"))


def _list(commands: _Commands) -> None:  # type: ignore[valid-type]
    parser = _add(commands, "list", "list the cases that the suite has for a backend", "list --backend cpu --op add")
    _backend(parser)
    _selection(parser, default_profile="full")
    _json(parser)
    parser.set_defaults(command=_lazy("inspect_backend", "list_cases"))


def _run(commands: _Commands) -> None:  # type: ignore[valid-type]
    parser = _add(commands, "run", "run cases on a backend", "run --backend cpu --profile smoke -n 2 --out runs/mine")
    _backend(parser)
    _selection(parser, default_profile="core")
    parser.add_argument(
        "-n", dest="workers", type=_count, default=0, metavar="N", help="workers; 0 (default) uses none"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder; default runs/<time>-<backend>-<profile>")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run in --out, or with the newest that was not finished"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of all samples (default 0)")
    parser.add_argument("--expect", type=Path, metavar="FILE", help="expectation file, instead of the backend's own")
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="time limit of one clause or sample, in seconds")
    parser.add_argument(
        "--fault", action="append", default=[], metavar="NAME", help="switch on a fault of the backend; repeatable"
    )
    _json(parser)
    parser.set_defaults(command=_lazy("run_command", "run"))


def _show(commands: _Commands) -> None:  # type: ignore[valid-type]
    parser = _add(commands, "show", "show a run, or one of its cases in full", "show runs/mine --kind MISMATCH")
    parser.add_argument("run", nargs="?", metavar="RUN", help="run folder; default the newest")
    parser.add_argument("--case", action="append", default=[], metavar="GLOB", help="only these; one case: in full")
    parser.add_argument("--family", action="append", default=[], help="only this family; repeatable")
    parser.add_argument("--kind", action="append", default=[], type=str.upper, help="only this kind; repeatable")
    parser.add_argument("--all", action="store_true", help="list what is as expected, too")
    _json(parser)
    parser.set_defaults(command=_lazy("results_commands", "show"))


def _compare(commands: _Commands) -> None:  # type: ignore[valid-type]
    parser = _add(commands, "compare", "compare two runs", "compare runs/before runs/after")
    parser.add_argument("before", metavar="A")
    parser.add_argument("after", metavar="B")
    _json(parser)
    parser.set_defaults(command=_lazy("results_commands", "compare"))


def _report(commands: _Commands) -> None:  # type: ignore[valid-type]
    parser = _add(commands, "report", "write a report of a run", "report --format html --out report.html")
    parser.add_argument("run", nargs="?", metavar="RUN", help="run folder; default the newest")
    parser.add_argument("--format", choices=("html", "md", "json"), default="html")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="default: report.FORMAT in the run folder; - is stdout"
    )
    parser.set_defaults(command=_lazy("results_commands", "report"))


def _expect(commands: _Commands) -> None:  # type: ignore[valid-type]
    parser = _add(commands, "expect", "check or write expectation files", "expect lint --backend my_spec.toml")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    lint = _add(actions, "lint", "check the expectation file of a backend", "lint --backend cpu --expect known.toml")
    _backend(lint)
    lint.add_argument("--expect", type=Path, metavar="FILE", help="expectation file, instead of the backend's own")
    lint.add_argument("--max-share", type=float, metavar="X", help="largest share of samples that entries may cover")
    lint.add_argument("--run", metavar="RUN", help="run whose samples --max-share counts; default the newest full one")
    _json(lint)
    lint.set_defaults(command=_lazy("expect_commands", "lint"))
    update = _add(actions, "update", "write entries for what a run found", "update --from runs/mine")
    update.add_argument("--from", dest="run", metavar="RUN", help="run folder; default the newest")
    update.add_argument("--expect", type=Path, metavar="FILE", help="file to write, instead of the backend's own")
    update.add_argument("--dry-run", action="store_true", help="print the file instead of writing it")
    update.set_defaults(command=_lazy("expect_commands", "update"))


def _backend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", required=True, metavar="NAME|FILE", help="built-in device, module or spec file")


def _selection(parser: argparse.ArgumentParser, default_profile: str) -> None:
    group = parser.add_argument_group("selection (cases that fit all of the options)")
    group.add_argument("--profile", choices=PROFILES, default=default_profile, help=f"default {default_profile}")
    group.add_argument(
        "--case", action="append", default=[], metavar="GLOB", help="'*' stays within a part; repeatable"
    )
    group.add_argument("--family", action="append", default=[], help="repeatable")
    group.add_argument("--op", action="append", default=[], help="operator; repeatable")
    group.add_argument("--dtype", action="append", default=[], help="repeatable")
    group.add_argument("--shard", default="1/1", metavar="I/N", help="the I-th of N parts of about equal cost")
    group.add_argument(
        "--last-failed",
        nargs="?",
        const="",
        metavar="RUN",
        help="what was not as expected in the newest run, or in RUN",
    )


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"got {text}, wanted 0 or more")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"got {text}, wanted a number above 0")
    return value


def _lazy(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    def call(options: argparse.Namespace) -> int:
        import importlib

        found: Callable[[argparse.Namespace], int] = getattr(
            importlib.import_module(f"torch_conformance.commands.{module}"), function
        )
        return found(options)

    return call


if __name__ == "__main__":
    sys.exit(main())
