"""A case: what is tested, under an id that never changes.

Standard library only and Python 3.10 clean: the parent and the device process both import this module.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

PROFILES = ("smoke", "core", "full")
"""Suite profiles from the smallest to the largest; each contains the ones before it."""

EMPTY = "-"
"""What stands in an id for a part that a case does not have."""


class CaseIdError(ValueError):
    """A text that is not a case id."""


@dataclass(frozen=True, slots=True)
class CaseId:
    """``family/subject/behaviour/dtype/variant``.

    The subject is ``OpInfo.full_name``, ``aten::op.overload``, a module or a clause. Ids never contain the name
    of the device and are never renumbered.
    """

    family: str
    subject: str
    behaviour: str
    dtype: str = EMPTY
    variant: str = EMPTY

    def __str__(self) -> str:
        return "/".join((self.family, self.subject, self.behaviour, self.dtype, self.variant))

    @classmethod
    def parse(cls, text: str) -> CaseId:
        """Split an id into its parts.

        Raises:
            CaseIdError: when there are not exactly five non-empty parts.
        """
        parts = text.split("/")
        if len(parts) != 5 or not all(parts):
            raise CaseIdError(
                f"got the case id {text!r}, wanted family/subject/behaviour/dtype/variant with '{EMPTY}' for an "
                "absent part; `torch-conformance list` prints the ids"
            )
        return cls(*parts)


@dataclass(frozen=True, slots=True)
class Case:
    """One subject, one behaviour, one dtype, one variant, with all its samples.

    Attributes:
        id: the five parts that name the case.
        profile: the smallest suite profile that runs it.
        cost: expected seconds on the CPU, for scheduling and sharding only.
        needs: capabilities that the backend must claim for the case to be required (``streams``, ...).
        requires: ids of cases that must pass first; when one does not, this case is BLOCKED.
        timeout_s: a time limit of its own where the backend's default would be wrong; 0 means the default.
        devices: how many devices of the backend it needs.
        processes: how many device processes (ranks) it needs; 1 for all but distributed cases.
        sampled: whether it runs over samples that the oracle makes and judges; a clause judges itself.
    """

    id: CaseId
    profile: str = "core"
    cost: float = 0.0
    needs: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    timeout_s: float = 0.0
    devices: int = 1
    processes: int = 1
    sampled: bool = False


def in_profile(case_profile: str, profile: str) -> bool:
    """Tell whether a case tagged ``case_profile`` runs under ``profile``."""
    return PROFILES.index(case_profile) <= PROFILES.index(profile)


@functools.lru_cache(maxsize=4096)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Turn a glob over case ids into a regular expression; ``*`` does not cross ``/``, ``**`` does."""
    out: list[str] = []
    position = 0
    while position < len(pattern):
        if pattern.startswith("**", position):
            out.append(".*")
            position += 2
        elif pattern[position] == "*":
            out.append("[^/]*")
            position += 1
        elif pattern[position] == "?":
            out.append("[^/]")
            position += 1
        else:
            out.append(re.escape(pattern[position]))
            position += 1
    return re.compile("".join(out))


def matches(pattern: str, case_id: str) -> bool:
    """Tell whether the glob ``pattern`` covers the whole of ``case_id``."""
    return compile_glob(pattern).fullmatch(case_id) is not None
