"""From the options that commands share to the types of the suite."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from ..backend import BackendSpec
from ..discovery import find_backend, with_options
from ..errors import UsageError
from ..run_folder import find_run
from ..selection import Selection, parse_shard


def spec_of(options: argparse.Namespace) -> BackendSpec:
    """The backend, with ``--timeout`` and ``--expect`` over its spec file."""
    expect: Path | None = getattr(options, "expect", None)
    if expect is not None and not expect.is_file():
        raise UsageError(f"got --expect {expect}, but there is no such file")
    return with_options(find_backend(options.backend), timeout_s=getattr(options, "timeout", None), expectations=expect)


def selection_of(options: argparse.Namespace) -> Selection:
    """Which cases are chosen."""
    return Selection(
        cases=tuple(options.case),
        families=tuple(options.family),
        ops=tuple(options.op),
        dtypes=tuple(options.dtype),
        profile=options.profile,
        shard=parse_shard(options.shard),
        only=_last_failed(options.last_failed) if options.last_failed is not None else None,
    )


def _last_failed(name: str) -> frozenset[str]:
    from ..run_record import read_run

    path = find_run(name or None)
    bad = read_run(path).bad
    if not bad:
        raise UsageError(f"nothing failed in {path}, so --last-failed chooses no case")
    return frozenset(bad)


def rerun_command(options: argparse.Namespace) -> str:
    """The command that runs one case of this run again when ``--case ID`` is added."""
    words = ["torch-conformance", "run", "--backend", options.backend, "--profile", options.profile]
    if options.seed:
        words += ["--seed", str(options.seed)]
    if options.expect is not None:
        words += ["--expect", str(options.expect)]
    if options.timeout is not None:
        words += ["--timeout", f"{options.timeout:g}"]
    for name in options.fault:
        words += ["--fault", name]
    return shlex.join(words)
