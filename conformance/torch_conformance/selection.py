"""Which cases of a plan are run: by glob, family, operator, dtype, profile, shard, or what failed last."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .case import PROFILES, Case, compile_glob, in_profile
from .errors import UsageError, did_you_mean, nearest

_Names = Callable[[Case], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Selection:
    """What the command line chose; an empty field does not restrict.

    Attributes:
        cases: globs over case ids; a case that matches one of them is chosen.
        families: names of families.
        ops: names of operators, with or without namespace, variant or overload.
        dtypes: names of dtypes; cases without a dtype are left out when any is given.
        profile: the suite profile. Cases beyond it are left out.
        shard: (I, N), I from 1 to N: the I-th of N parts of about equal cost.
        only: ids, from `--last-failed`; None does not restrict.
    """

    cases: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    profile: str = "core"
    shard: tuple[int, int] = (1, 1)
    only: frozenset[str] | None = None

    @property
    def restricts(self) -> bool:
        """Whether anything but the profile leaves cases out."""
        return bool(
            self.cases or self.families or self.ops or self.dtypes or self.shard != (1, 1) or self.only is not None
        )


def parse_shard(text: str) -> tuple[int, int]:
    """Read ``I/N``.

    Raises:
        UsageError: when it is not of that form with 1 <= I <= N.
    """
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    shard = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= shard[0] <= shard[1]:
        raise UsageError(f"got the shard {text!r}, wanted I/N with 1 <= I <= N, such as 1/4")
    return shard


def select(cases: Sequence[Case], selection: Selection) -> list[Case]:
    """The chosen cases, in plan order.

    Raises:
        UsageError: when a glob, family, operator or dtype matches nothing at all in the plan, naming the nearest.
    """
    chosen = list(cases)
    if selection.cases:
        chosen = _by_glob(chosen, selection.cases)
    chosen = _by_name(chosen, selection.families, "family", lambda case: (case.id.family,), cases)
    chosen = _by_name(chosen, selection.ops, "operator", _operator_names, cases)
    chosen = _by_name(chosen, selection.dtypes, "dtype", lambda case: (case.id.dtype,), cases)
    if selection.only is not None:
        chosen = [case for case in chosen if str(case.id) in selection.only]
    chosen = [case for case in chosen if in_profile(case.profile, selection.profile)]
    return _shard(chosen, *selection.shard)


def why_nothing(cases: Sequence[Case], selection: Selection) -> str:
    """Why a selection is empty although each of its parts matches something."""
    for profile in PROFILES[PROFILES.index(selection.profile) + 1 :]:
        wider = Selection(
            selection.cases, selection.families, selection.ops, selection.dtypes, profile, (1, 1), selection.only
        )
        found = select(cases, wider)
        if found:
            return f"the profile {selection.profile!r} holds none of them; {len(found)} are in --profile {profile}"
    return "no case matches all of the options; leave one out"


_NAMESPACES = frozenset(
    ("nn", "nn.functional", "linalg", "fft", "special", "sparse", "masked", "signal", "signal.windows", "torch", "ops")
)


def _operator_names(case: Case) -> tuple[str, ...]:
    """What ``--op`` may call an operator: its full name, the name without variant or overload, and its last part."""
    plain = case.id.subject.removeprefix("aten::")
    parts = plain.split(".")
    heads = {".".join(parts[:end]) for end in range(1, len(parts))} - _NAMESPACES
    return (case.id.subject, plain, parts[-1], *sorted(heads))


def _by_glob(cases: list[Case], globs: Sequence[str]) -> list[Case]:
    ids = [str(case.id) for case in cases]
    wanted: set[str] = set()
    for glob in globs:
        match = compile_glob(glob).fullmatch
        found = [name for name in ids if match(name)]
        if not found:
            raise UsageError(f"no case matches {glob!r}{_near_id(glob, ids)}")
        wanted.update(found)
    return [case for case, name in zip(cases, ids, strict=True) if name in wanted]


def _near_id(glob: str, ids: Sequence[str]) -> str:
    guess = nearest_id(glob, ids)
    hint = f"; the nearest id is {guess!r}" if guess else ""
    if "/" not in glob:
        hint += "; an id has five parts, and only '**' crosses '/'"
    return hint + "; `torch-conformance list` prints all ids"


def nearest_id(glob: str, ids: Iterable[str]) -> str:
    """The id that is most like a glob, looked for among those that share most of its parts."""
    parts = glob.split("/")

    def shared(name: str) -> int:
        return sum(a == b for a, b in zip(parts, name.split("/"), strict=False))

    names = list(ids)
    best = max((shared(name) for name in names), default=0)
    # Comparing with thousands of ids is slow, and one that shares fewer parts is not nearer.
    candidates = [name for name in names if shared(name) == best]
    if len(candidates) > 500:
        position = min(1, len(parts) - 1)
        values = sorted({name.split("/")[position] for name in candidates})
        value = nearest(parts[position].strip("*"), values)
        candidates = [name for name in candidates if name.split("/")[position] == value]
    return nearest(glob.replace("*", ""), candidates)


def _by_name(
    chosen: list[Case], wanted: Sequence[str], what: str, names: _Names, everything: Sequence[Case]
) -> list[Case]:
    if not wanted:
        return chosen
    for word in wanted:
        if not any(word in names(case) for case in everything):
            known = sorted({name for case in everything for name in names(case)})
            shown = f", wanted one of {', '.join(known)}" if len(known) <= 24 else ""
            raise UsageError(f"got the {what} {word!r}{shown}{did_you_mean(word, known)}")
    return [case for case in chosen if any(name in wanted for name in names(case))]


def _shard(cases: list[Case], index: int, count: int) -> list[Case]:
    """Deal out the costliest first, each to the part that has least so far; ties go by id, never by luck."""
    if count == 1:
        return cases
    load = [0.0] * count
    part: dict[str, int] = {}
    for case in sorted(cases, key=lambda case: (-case.cost, str(case.id))):
        lightest = min(range(count), key=lambda position: (load[position], position))
        part[str(case.id)] = lightest
        # A case costs something even where nothing was measured.
        load[lightest] += max(case.cost, 0.001)
    return [case for case in cases if part[str(case.id)] == index - 1]
