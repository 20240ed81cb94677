"""Write an expectation file from a run, keeping the words and the comments of the entries that stay."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .case import Case, CaseId
from .expectation import ALLOWED_KINDS, PLACEHOLDER, SCHEMA, Expectation
from .judge import Judge, Verdict
from .outcome import Kind, Outcome
from .run_record import Results

_HEADER = re.compile(r"^\s*\[\[expect\]\]\s*(#.*)?$")


@dataclass(frozen=True, slots=True)
class Update:
    """The new text of the file and what changed in it."""

    text: str
    added: int
    removed: int
    kept: int


def updated(text: str, entries: Sequence[Expectation], results: Results, cases: Mapping[str, Case]) -> Update:
    """Add an entry for each regression that an entry may cover, and remove the entries that the run proves unnecessary.

    Args:
        text: of the file as it is; empty when there is none.
        entries: what it holds.
        results: the run.
        cases: the whole plan by id.
    """
    run = results.run
    judge = Judge(
        entries,
        torch=run.backend.torch if run.backend else "",
        device=run.backend.device_name if run.backend else "",
        profile=run.profile,
    )
    stale = {entry.line for entry in judge.stale(results.outcomes, cases)}
    judgements = judge.judge_all(results.outcomes, cases)
    wrong = [
        outcome
        for name, outcome in results.outcomes.items()
        if judgements[name].verdict is Verdict.REGRESSION and outcome.kind in ALLOWED_KINDS
    ]
    fresh = _entries_for(wrong, results.outcomes, cases)
    kept_text = _without(text or f"schema = {SCHEMA}\n", stale)
    added = "".join(f"\n{entry}" for entry in fresh)
    return Update(kept_text.rstrip("\n") + "\n" + added, len(fresh), len(stale), len(entries) - len(stale))


def _without(text: str, lines: set[int]) -> str:
    """The text without the tables that begin at ``lines``, and without the comments right above them."""
    if not lines:
        return text
    rows = text.splitlines(keepends=True)
    starts = [number for number, row in enumerate(rows, 1) if _HEADER.match(row)]
    drop: set[int] = set()
    for position, start in enumerate(starts):
        if start not in lines:
            continue
        first = start
        while first > 1 and rows[first - 2].lstrip().startswith("#"):
            first -= 1
        end = starts[position + 1] if position + 1 < len(starts) else len(rows) + 1
        # Comments above the next table belong to that one.
        while end - 1 > start and rows[end - 2].lstrip().startswith("#") and end <= len(rows):
            end -= 1
        drop.update(range(first, end))
    return "".join(row for number, row in enumerate(rows, 1) if number not in drop)


def _entries_for(wrong: Sequence[Outcome], outcomes: Mapping[str, Outcome], cases: Mapping[str, Case]) -> list[str]:
    """One entry a case, or one for all dtypes of a subject where each of them fails wholly and in the same way."""
    whole: dict[tuple[CaseId, Kind], list[Outcome]] = {}
    out = []
    for outcome in wrong:
        if _fails_wholly(outcome):
            identifier = cases[outcome.id].id if outcome.id in cases else CaseId.parse(outcome.id)
            glob = CaseId(identifier.family, identifier.subject, identifier.behaviour, "*", identifier.variant)
            whole.setdefault((glob, outcome.kind), []).append(outcome)
        else:
            kinds: set[Kind] = {sample.kind for sample in outcome.samples.failed if sample.kind is not Kind.REFUSED}
            indices = [sample.index for sample in outcome.samples.failed if sample.kind is not Kind.REFUSED]
            out.append(_entry(outcome.id, kinds, outcome.message, indices))
    for (glob, kind), found in whole.items():
        every = [name for name, case in cases.items() if _same_but_dtype(case.id, glob)]
        if len(found) > 1 and len(found) == len(every) and all(name in outcomes for name in every):
            out.append(_entry(str(glob), {kind}, found[0].message))
        else:
            out += [_entry(outcome.id, {kind}, outcome.message) for outcome in found]
    return out


def _fails_wholly(outcome: Outcome) -> bool:
    failed = outcome.samples.failed
    if not failed:
        return True
    return len(failed) == outcome.samples.planned and {sample.kind for sample in failed} == {outcome.kind}


def _same_but_dtype(identifier: CaseId, glob: CaseId) -> bool:
    return (identifier.family, identifier.subject, identifier.behaviour, identifier.variant) == (
        glob.family,
        glob.subject,
        glob.behaviour,
        glob.variant,
    )


def _entry(glob: str, kinds: set[Kind], message: str, samples: Sequence[int] = ()) -> str:
    # A TOML basic string takes the escapes of a JSON one.
    lines = [f"# {' '.join(message.split())[:200]}"] if message else []
    lines += ["[[expect]]", f"case = {json.dumps(glob)}"]
    lines.append(f"kinds = [{', '.join(json.dumps(kind.value) for kind in Kind if kind in kinds)}]")
    if samples:
        lines.append(f"samples = [{', '.join(map(str, samples))}]")
    lines.append(f"reason = {json.dumps(PLACEHOLDER)}")
    return "\n".join(lines) + "\n"
