"""``show``, ``compare`` and ``report``: read what runs left."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from .. import codec
from ..case import compile_glob
from ..delta import Change, Delta
from ..delta import compare as compare_results
from ..errors import EXIT_EXPECTED, EXIT_FINDINGS, UsageError, did_you_mean
from ..outcome import Kind, Outcome
from ..run_folder import find_run, read_task, replace_file
from ..run_record import Results, read_results
from ..selection import nearest_id

CHANGES_SHOWN = 40


def show(options: argparse.Namespace) -> int:
    """Show a run, the part of it that fits the filters, or one case in full."""
    from ..report.show import print_case, print_outcomes
    from ..report.terminal import console, print_summary

    results = read_results(find_run(options.run))
    outcomes = _filtered(results, options)
    if options.json:
        verdict = results.run.verdict
        print(json.dumps([{**codec.to_json(item), "verdict": verdict(item.id).value} for item in outcomes], indent=1))
        return EXIT_EXPECTED
    to = console()
    rerun = _rerun(results.path)
    if options.case and len(outcomes) == 1:
        case = next(case for case in results.cases if str(case.id) == outcomes[0].id)
        print_case(results, case, outcomes[0], rerun, to)
    elif options.case or options.family or options.kind or options.all:
        print_outcomes(outcomes, to)
    else:
        print_summary(results, to, rerun)
    return EXIT_EXPECTED


def _filtered(results: Results, options: argparse.Namespace) -> list[Outcome]:
    outcomes = list(results.outcomes.values())
    for glob in options.case:
        if not any(compile_glob(glob).fullmatch(item.id) for item in outcomes):
            near = nearest_id(glob, results.outcomes)
            raise UsageError(
                f"no case of {results.path} matches {glob!r}{f'; the nearest id is {near!r}' if near else ''}"
            )
    families = {item.id.partition("/")[0] for item in outcomes}
    for family in options.family:
        if family not in families:
            known = ", ".join(sorted(families))
            raise UsageError(f"got the family {family!r}, the run has {known}{did_you_mean(family, families)}")
    kinds = [kind.value for kind in Kind]
    for kind in options.kind:
        if kind not in kinds:
            raise UsageError(f"got the kind {kind!r}, wanted one of {', '.join(kinds)}{did_you_mean(kind, kinds)}")
    if options.case:
        outcomes = [item for item in outcomes if any(compile_glob(glob).fullmatch(item.id) for glob in options.case)]
    if options.family:
        outcomes = [item for item in outcomes if item.id.partition("/")[0] in options.family]
    if options.kind:
        outcomes = [item for item in outcomes if item.kind.value in options.kind]
    if not (options.all or options.case or options.kind or options.json):
        outcomes = [item for item in outcomes if item.id in results.run.deviations]
    return outcomes


def _rerun(path: Path) -> str:
    try:
        rerun = read_task(path)[0].rerun
    except (OSError, ValueError):
        rerun = ""
    return rerun or shlex.join(["torch-conformance", "run"])


def compare(options: argparse.Namespace) -> int:
    """Say what differs between two runs; 1 when the second is worse."""
    before, after = read_results(find_run(options.before)), read_results(find_run(options.after))
    delta = compare_results(before, after)
    if options.json:
        print(json.dumps(codec.to_json(delta), indent=1))
    else:
        _print_delta(delta)
    return EXIT_FINDINGS if delta.worse else EXIT_EXPECTED


def _print_delta(delta: Delta) -> None:
    from ..report.terminal import console

    to = console()
    for name, old, new in delta.environment:
        to.print(f"{name}: {old or 'none'} -> {new or 'none'}", markup=False)
    lists = (
        ("Regressions", "red", delta.regressions),
        ("Fixed", "green", delta.fixed),
        ("Fail in another way", "yellow", delta.changed),
        ("Only in the second run", "cyan", delta.new),
        ("Only in the first run", "cyan", delta.gone),
    )
    for title, style, changes in lists:
        if changes:
            to.print(f"[{style}]{title}[/{style}]: {len(changes)}")
        for change in changes[:CHANGES_SHOWN]:
            to.print(f"  {change.id}  {_kinds(change)}", markup=False, soft_wrap=True)
            if change.message and change in delta.regressions:
                to.print(f"      {' '.join(change.message.split())[:200]}", markup=False, soft_wrap=True)
        if len(changes) > CHANGES_SHOWN:
            to.print(f"  and {len(changes) - CHANGES_SHOWN} more; --json has them all")
    to.print(f"Unchanged: {delta.same}")


def _kinds(change: Change) -> str:
    old = change.before.value if change.before else "absent"
    new = change.after.value if change.after else "absent"
    text = f"{old} -> {new}"
    if change.samples_before != change.samples_after and change.before and change.after:
        text += f", failed samples {len(change.samples_before)} -> {len(change.samples_after)}"
    return text


def report(options: argparse.Namespace) -> int:
    """Write a report of a run."""
    from ..report.page import as_html, as_json, as_markdown

    results = read_results(find_run(options.run))
    text = {"html": as_html, "md": as_markdown, "json": as_json}[options.format](results)
    if options.out is not None and str(options.out) == "-":
        print(text, end="")
        return EXIT_EXPECTED
    file = options.out or results.path / f"report.{options.format}"
    try:
        replace_file(file, text)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror or error}; name another file with --out") from error
    print(file)
    return EXIT_EXPECTED
