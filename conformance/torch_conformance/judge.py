"""Compare outcomes with expectations. Facts come in, judgements go out; neither changes the other."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from .case import Case
from .expectation import PLACEHOLDER, Expectation
from .outcome import Kind, Outcome
from .selection import nearest_id


class Verdict(str, Enum):
    """What an outcome means for this backend."""

    AS_EXPECTED = "as expected"
    """It passed, it was refused and not claimed, or it deviates as an entry says."""
    REGRESSION = "regression"
    UNEXPECTED_PASS = "unexpected pass"
    """Every case of an entry passed: the entry must go."""
    FLAKY = "flaky"
    """It deviates, and its entry says that it sometimes does."""
    WAIVED = "waived"
    """It deviates as an entry allows until a date."""
    UPSTREAM = "upstream"
    """It deviates as an entry says, and a patch to PyTorch cures it."""


BAD = (Verdict.REGRESSION, Verdict.UNEXPECTED_PASS)
"""Verdicts that make a run end with exit code 1."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one outcome and the entry that it rests on.

    Attributes:
        verdict: the verdict.
        entry: glob of the entry, or empty when none was needed.
        reason: of the entry.
        link: of the entry.
    """

    verdict: Verdict
    entry: str = ""
    reason: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with an expectation file that does not keep it from being read.

    Attributes:
        entry: glob of the entry.
        line: its line.
        text: what is wrong and what to do.
    """

    entry: str
    line: int
    text: str


class Judge:
    """Judges the outcomes of one run."""

    def __init__(
        self,
        expectations: Sequence[Expectation],
        *,
        torch: str = "",
        device: str = "",
        profile: str = "full",
        today: datetime.date | None = None,
    ) -> None:
        """Choose the entries that hold.

        Args:
            expectations: all entries of the file.
            torch: version of torch in the device process.
            device: the name that the device gives itself.
            profile: the suite profile of the run.
            today: for entries that expire.
        """
        self._today = today or datetime.date.today()
        self._profile = profile
        self._all = tuple(expectations)
        self._holding = tuple(
            entry
            for entry in expectations
            if entry.condition.holds(torch, device, profile) and not entry.expired(self._today)
        )

    def judge(self, outcome: Outcome, blocker: Judgement | None = None) -> Judgement:
        """The verdict on one outcome; ``blocker`` is the judgement of the case that blocks it, if that ran too."""
        if outcome.kind in (Kind.PASS, Kind.REFUSED):
            return Judgement(Verdict.AS_EXPECTED)
        if outcome.kind is Kind.BLOCKED:
            return self._blocked(outcome, blocker)
        if outcome.kind in (Kind.ORACLE_BROKEN, Kind.NOT_RUN):
            return Judgement(Verdict.REGRESSION)
        entries = [entry for entry in self._holding if entry.covers_case(outcome.id)]
        used: list[Expectation] = []
        if outcome.samples.failed:
            for sample in outcome.samples.failed:
                if sample.kind is Kind.REFUSED:
                    continue
                entry = next((entry for entry in entries if entry.covers_sample(sample)), None)
                if entry is None:
                    return Judgement(Verdict.REGRESSION)
                used.append(entry)
        else:
            used = [entry for entry in entries if outcome.kind in entry.kinds and not entry.samples][:1]
        if not used:
            return Judgement(Verdict.REGRESSION)
        return _rests_on(used[0])

    def _blocked(self, outcome: Outcome, blocker: Judgement | None) -> Judgement:
        if blocker is not None:
            return blocker
        # The blocker was not selected: its entry is all that is known of it.
        entry = next((entry for entry in self._holding if entry.covers_case(outcome.blocked_by)), None)
        return _rests_on(entry) if entry is not None else Judgement(Verdict.REGRESSION)

    def judge_all(self, outcomes: Mapping[str, Outcome], cases: Mapping[str, Case]) -> dict[str, Judgement]:
        """The verdicts on a whole run.

        Args:
            outcomes: by case id.
            cases: the whole plan by id; an entry passes unexpectedly only when all that it covers ran and passed.
        """
        out = {name: self.judge(outcome) for name, outcome in outcomes.items() if outcome.kind is not Kind.BLOCKED}
        for name, outcome in outcomes.items():
            if outcome.kind is Kind.BLOCKED:
                out[name] = self.judge(outcome, out.get(outcome.blocked_by))
        for entry in self.stale(outcomes, cases):
            for name in outcomes:
                if entry.covers_case(name):
                    out[name] = Judgement(Verdict.UNEXPECTED_PASS, entry.case, entry.reason, entry.link)
        return {name: out[name] for name in outcomes}

    def stale(self, outcomes: Mapping[str, Outcome], cases: Mapping[str, Case]) -> list[Expectation]:
        """The entries that a run proves unnecessary.

        An entry with a condition may be needed elsewhere, a flaky one may pass, and a profile that caps samples may
        have left out the one that fails: none of these is ever proven unnecessary.
        """
        out = []
        for entry in self._holding:
            if entry.flaky or entry.conditioned:
                continue
            covered = [name for name in cases if entry.covers_case(name)]
            proven = bool(covered) and all(
                name in outcomes
                and outcomes[name].kind is Kind.PASS
                and (self._profile == "full" or not cases[name].sampled)
                for name in covered
            )
            if proven:
                out.append(entry)
        return out

    def covered_samples(self, outcomes: Mapping[str, Outcome]) -> tuple[int, int]:
        """How many samples of a run the entries cover, whether they deviate or not, and how many there are."""
        covered = planned = 0
        for name, outcome in outcomes.items():
            planned += outcome.samples.planned
            entries = [entry for entry in self._holding if entry.covers_case(name)]
            if any(not entry.samples for entry in entries):
                covered += outcome.samples.planned
            elif entries:
                named = {sample for entry in entries for sample in entry.samples}
                covered += min(outcome.samples.planned, len(named))
        return covered, planned

    def problems(self, ids: Iterable[str], families: Collection[str] = ()) -> list[Problem]:
        """What is wrong with the entries.

        Args:
            ids: the ids of the plan.
            families: the only families that the plan was listed for; an entry that names another is not looked for.
                Empty when the plan is whole.
        """
        names = list(ids)
        out = []
        seen: dict[Expectation, int] = {}
        for entry in self._all:
            where = (entry.case, entry.line)
            if entry.expired(self._today):
                text = f"expired on {entry.expires}: verify it again and set a new date, or remove it"
                out.append(Problem(*where, text))
            if entry.reason == PLACEHOLDER:
                out.append(Problem(*where, "has no reason yet: verify the deviation and say why it is there"))
            # Where a condition does not hold, the plan may lack cases that another torch or device has.
            meant = entry in self._holding or not entry.conditioned
            family = entry.case.partition("/")[0]
            meant = meant and (not families or family in families or any(mark in family for mark in "*?"))
            if meant and not any(entry.covers_case(name) for name in names):
                guess = nearest_id(entry.case, names)
                out.append(
                    Problem(*where, f"matches no case of the plan{f'; the nearest id is {guess!r}' if guess else ''}")
                )
            key = Expectation(entry.case, entry.kinds, "", samples=entry.samples, condition=entry.condition)
            if key in seen:
                out.append(Problem(*where, f"repeats the entry of line {seen[key]}: remove one"))
            seen.setdefault(key, entry.line)
        return out


def _rests_on(entry: Expectation) -> Judgement:
    verdict = Verdict.AS_EXPECTED
    if entry.patch:
        verdict = Verdict.UPSTREAM
    elif entry.flaky:
        verdict = Verdict.FLAKY
    elif entry.expires:
        verdict = Verdict.WAIVED
    return Judgement(verdict, entry.case, entry.reason, entry.link or entry.patch)
