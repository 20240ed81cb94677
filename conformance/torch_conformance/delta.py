"""What differs between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .judge import Verdict
from .outcome import Kind, Outcome
from .run_record import Results, Run


@dataclass(frozen=True, slots=True)
class Change:
    """One case whose kind, or failed samples, are not the same.

    Attributes:
        id: of the case.
        before: its kind in the first run, or None where it had no such case.
        after: its kind in the second run, or None.
        samples_before: indices of the failed samples.
        samples_after: indices of the failed samples.
        message: of the second run, or of the first where it has none.
    """

    id: str
    before: Kind | None
    after: Kind | None
    samples_before: tuple[int, ...] = ()
    samples_after: tuple[int, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """Two runs, compared.

    Attributes:
        regressions: passed (or was refused) before and does not now, or fails in samples that passed.
        fixed: did not pass before and does now.
        changed: fails in another way than before.
        new: cases that only the second run has.
        gone: cases that only the first run has.
        environment: what differs between the runs themselves: name, before, after.
        same: how many cases did not change.
    """

    regressions: tuple[Change, ...] = ()
    fixed: tuple[Change, ...] = ()
    changed: tuple[Change, ...] = ()
    new: tuple[Change, ...] = ()
    gone: tuple[Change, ...] = ()
    environment: tuple[tuple[str, str, str], ...] = ()
    same: int = 0

    @property
    def worse(self) -> bool:
        """Whether there are regressions; a new case that is not as expected is one."""
        return bool(self.regressions)


_GOOD = (Kind.PASS, Kind.REFUSED)


def compare(before: Results, after: Results) -> Delta:
    """Compare two runs case by case.

    A case that is NOT_RUN in one of them says nothing there: it counts as gone or new. A case that passed and is now
    refused or blocked is a regression: something that worked does not.
    """
    old = {name: outcome for name, outcome in before.outcomes.items() if outcome.kind is not Kind.NOT_RUN}
    new = {name: outcome for name, outcome in after.outcomes.items() if outcome.kind is not Kind.NOT_RUN}
    found: dict[str, list[Change]] = {"regressions": [], "fixed": [], "changed": [], "new": [], "gone": []}
    same = 0
    for name, outcome in new.items():
        earlier = old.get(name)
        if earlier is None:
            bad = after.run.verdict(name) is Verdict.REGRESSION
            found["regressions" if bad else "new"].append(_change(None, outcome))
            continue
        where = _where(earlier, outcome)
        if where:
            found[where].append(_change(earlier, outcome))
        else:
            same += 1
    found["gone"] = [_change(earlier, None) for name, earlier in old.items() if name not in new]
    return Delta(
        **{key: tuple(changes) for key, changes in found.items()},
        environment=_environment(before.run, after.run),
        same=same,
    )


def _where(earlier: Outcome, later: Outcome) -> str:
    """Which list of a `Delta` a case belongs to; empty when nothing changed."""
    if earlier.kind is Kind.PASS:
        return "" if later.kind is Kind.PASS else "regressions"
    if later.kind is Kind.PASS:
        return "fixed"
    if earlier.kind in _GOOD and later.kind not in _GOOD:
        return "regressions"
    old = {sample.index: sample.kind for sample in earlier.samples.failed}
    new = {sample.index: sample.kind for sample in later.samples.failed}
    # What failed last in a shorter run may not have been reached; only samples that both ran can have become worse.
    if set(new) - set(old) and earlier.samples.planned == later.samples.planned:
        return "regressions"
    return "" if earlier.kind is later.kind and old == new else "changed"


def _change(earlier: Outcome | None, later: Outcome | None) -> Change:
    either = later or earlier
    assert either is not None
    return Change(
        id=either.id,
        before=earlier.kind if earlier else None,
        after=later.kind if later else None,
        samples_before=_failed(earlier),
        samples_after=_failed(later),
        message=(later.message if later else "") or (earlier.message if earlier else ""),
    )


def _failed(outcome: Outcome | None) -> tuple[int, ...]:
    return tuple(sample.index for sample in outcome.samples.failed) if outcome else ()


def _environment(before: Run, after: Run) -> tuple[tuple[str, str, str], ...]:
    old, new = _described(before), _described(after)
    return tuple((name, old.get(name, ""), new.get(name, "")) for name in new if old.get(name, "") != new[name])


def _described(run: Run) -> Mapping[str, str]:
    backend = run.backend
    out = {
        "backend": run.spec.name,
        "profile": run.profile,
        "seed": str(run.seed),
        "faults": ", ".join(run.faults),
        "platform": run.platform,
        "suite": run.digests.get("suite", ""),
        "overlay": run.digests.get("overlay", ""),
        "expectations": run.digests.get("expectations", ""),
    }
    if backend is not None:
        out.update(
            torch=backend.torch,
            torch_git=backend.torch_git,
            python=backend.python,
            device=backend.device_name,
            devices=str(backend.count),
            build=backend.build,
            **{f"{name} version": version for name, version in backend.packages.items()},
        )
    return out
