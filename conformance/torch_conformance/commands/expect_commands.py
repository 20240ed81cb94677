"""``expect lint`` and ``expect update``: keep an expectation file true."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .. import codec
from ..errors import EXIT_EXPECTED, EXIT_FINDINGS, UsageError
from ..expectation import Expectation, read_expectations
from ..expectation_update import updated
from ..judge import Judge, Problem
from ..plan import load_plan
from ..run_folder import find_run, read_task, replace_file, runs_newest_first
from ..run_record import Results, read_results
from .options import spec_of


def lint(options: argparse.Namespace) -> int:
    """Check the expectation file of a backend against its whole plan; 1 when something is wrong with it."""
    spec = spec_of(options)
    if not spec.expectations or not Path(spec.expectations).exists():
        where = spec.expectations or "none is named"
        raise UsageError(f"{spec.name} has no expectation file ({where}); name one with --expect")
    file = Path(spec.expectations)
    entries = read_expectations(file)
    plan = load_plan(spec)
    problems = list(Judge(entries).problems(plan.by_id))
    share = None
    if options.max_share is not None:
        share = _share(entries, options.run, spec.name)
        if share > options.max_share:
            text = f"the entries cover {share:.4%} of the samples, more than {options.max_share:.4%}"
            problems.append(Problem("", 0, text))
    if options.json:
        print(json.dumps({"entries": len(entries), "share": share, "problems": codec.to_json(problems)}, indent=2))
    else:
        for problem in problems:
            where = f"{file}:{problem.line}: {problem.entry!r} " if problem.line else f"{file}: "
            print(where + problem.text)
        covered = "" if share is None else f", {share:.4%} of the samples"
        print(f"{len(entries)} entries{covered}, {len(problems)} problems")
    return EXIT_FINDINGS if problems else EXIT_EXPECTED


def _share(entries: tuple[Expectation, ...], name: str | None, backend: str) -> float:
    results = read_results(find_run(name)) if name is not None else _newest_full(backend)
    run = results.run
    judge = Judge(
        entries,
        torch=run.backend.torch if run.backend else "",
        device=run.backend.device_name if run.backend else "",
        profile=run.profile,
    )
    covered, planned = judge.covered_samples(results.outcomes)
    return covered / planned if planned else 0.0


def _newest_full(backend: str) -> Results:
    for path in runs_newest_first():
        try:
            results = read_results(path)
        except UsageError:
            continue
        if results.run.spec.name == backend and results.run.profile == "full":
            return results
    raise UsageError(
        f"--max-share counts the samples of a run, and there is no finished full run of {backend} below runs/. Make "
        f"one by `torch-conformance run --backend {backend} --profile full`, or name one with --run."
    )


def update(options: argparse.Namespace) -> int:
    """Write entries for what a run found, and remove those that it proves unnecessary."""
    path = find_run(options.run)
    results = read_results(path)
    spec = results.run.spec
    target = options.expect or (Path(spec.expectations) if spec.expectations else None)
    if target is None:
        raise UsageError(f"{spec.name} names no expectation file; name the file to write with --expect")
    plan = load_plan(read_task(path)[0].spec)
    text = target.read_text(encoding="utf-8") if target.exists() else ""
    entries = read_expectations(target) if text else ()
    change = updated(text, entries, results, plan.by_id)
    if options.dry_run:
        print(change.text, end="")
        return EXIT_EXPECTED
    try:
        replace_file(target, change.text)
    except OSError as error:
        raise UsageError(
            f"cannot write {target}: {error.strerror or error}; name another file with --expect"
        ) from error
    # A file that the suite itself could not read back must not be left unnoticed.
    read_expectations(target)
    print(f"{target}: {change.added} entries added, {change.removed} removed, {change.kept} kept")
    if change.added:
        print("Say why in each new entry, after having verified it: `expect lint` refuses the placeholder.")
    return EXIT_EXPECTED
