"""What a backend is known not to do, as data beside the backend: each deviation with its reason and its end."""

from __future__ import annotations

import datetime
import fnmatch
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomllib

from .case import PROFILES, matches
from .errors import UsageError, did_you_mean
from .outcome import FailedSample, Kind

SCHEMA = 1
PLACEHOLDER = "TODO: say why, after having verified it"
"""What `expect update` writes as the reason of a new entry; `expect lint` refuses it."""
ALLOWED_KINDS = (Kind.MISMATCH, Kind.RAISED, Kind.REFUSED, Kind.CRASHED, Kind.TIMED_OUT, Kind.PASS)
"""PASS beside another kind says that the case is flaky. ORACLE_BROKEN, BLOCKED and NOT_RUN can never be expected."""
_COMPARISON = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)*)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """Where an entry holds; an empty part holds everywhere.

    Attributes:
        torch: comparisons with torch's version, such as ``>=2.14,<2.15``.
        device: a shell glob over the name that the device gives itself.
        profile: suite profiles.
    """

    torch: str = ""
    device: str = ""
    profile: tuple[str, ...] = ()

    def holds(self, torch: str, device: str, profile: str) -> bool:
        """Tell whether a run on that torch, device and profile is meant."""
        if self.torch and not _version_matches(torch, self.torch):
            return False
        if self.device and not fnmatch.fnmatchcase(device, self.device):
            return False
        return not self.profile or profile in self.profile


@dataclass(frozen=True, slots=True)
class Expectation:
    """One entry of an expectation file.

    Attributes:
        case: a glob over case ids.
        kinds: the kinds that are allowed instead of PASS; with PASS among them the cases are flaky.
        reason: why, as verified.
        link: where it is discussed, or empty.
        samples: indices or digests of the samples that may deviate; empty means any.
        condition: where the entry holds.
        expires: the last day on which it holds, ISO, or empty.
        patch: the topic of the patch series that cures it, or empty.
        line: where it stands in its file.
    """

    case: str
    kinds: tuple[Kind, ...]
    reason: str
    link: str = ""
    samples: tuple[str, ...] = ()
    condition: Condition = field(default_factory=Condition)
    expires: str = ""
    patch: str = ""
    line: int = 0

    @property
    def flaky(self) -> bool:
        """Whether the cases may also pass."""
        return Kind.PASS in self.kinds

    @property
    def conditioned(self) -> bool:
        """Whether it holds for some runs only."""
        return self.condition != Condition()

    def expired(self, today: datetime.date) -> bool:
        """Whether its last day is over."""
        return bool(self.expires) and datetime.date.fromisoformat(self.expires) < today

    def covers_case(self, case_id: str) -> bool:
        """Whether its glob matches."""
        return matches(self.case, case_id)

    def covers_sample(self, sample: FailedSample) -> bool:
        """Whether it allows what happened to this sample."""
        named = not self.samples or str(sample.index) in self.samples or sample.digest in self.samples
        return sample.kind in self.kinds and named


def read_expectations(path: Path) -> tuple[Expectation, ...]:
    """Read an expectation file.

    Raises:
        UsageError: naming file, line, key, what was got and what was wanted.
    """
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read the expectation file {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from error
    for key in data:
        if key not in ("schema", "expect"):
            raise UsageError(
                f"{path}: unknown key {key!r}, wanted schema or [[expect]]{did_you_mean(key, ('expect',))}"
            )
    if data.get("schema") != SCHEMA:
        raise UsageError(f"{path}: key 'schema': got {data.get('schema')!r}, wanted {SCHEMA}")
    entries = data.get("expect", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{path}: key 'expect': wanted tables that begin with [[expect]]")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.strip().startswith("[[expect]]")]
    lines += [0] * (len(entries) - len(lines))
    return tuple(_Entry(f"{path}:{line}", entry).read(line) for entry, line in zip(entries, lines, strict=False))


class _Entry:
    """One table while it is checked."""

    _KEYS = ("case", "kinds", "reason", "link", "samples", "condition", "expires", "patch")

    def __init__(self, where: str, data: dict[str, Any]) -> None:
        self._where = where
        self._data = data

    def read(self, line: int) -> Expectation:
        for key in self._data:
            if key not in self._KEYS:
                raise self._error(
                    f"unknown key {key!r}, wanted one of {', '.join(self._KEYS)}{did_you_mean(key, self._KEYS)}"
                )
        return Expectation(
            case=self._text("case", required=True),
            kinds=self._kinds(),
            reason=self._text("reason", required=True),
            link=self._text("link"),
            samples=self._samples(),
            condition=self._condition(),
            expires=self._expires(),
            patch=self._text("patch"),
            line=line,
        )

    def _error(self, what: str) -> UsageError:
        return UsageError(f"{self._where}: {what}")

    def _text(self, key: str, required: bool = False) -> str:
        value = self._data.get(key, "")
        if not isinstance(value, str) or (key in self._data and not value.strip()):
            raise self._error(f"key {key!r}: got {value!r}, wanted a text that is not empty")
        if required and not value:
            raise self._error(f"key {key!r} is missing, and every entry needs it")
        return value

    def _kinds(self) -> tuple[Kind, ...]:
        allowed = [kind.value for kind in ALLOWED_KINDS]
        value = self._data.get("kinds")
        if not isinstance(value, list) or not value:
            raise self._error(f"key 'kinds': got {value!r}, wanted a list of {', '.join(allowed)}")
        for word in value:
            if word not in allowed:
                hint = did_you_mean(str(word).upper(), allowed)
                raise self._error(f"key 'kinds': got {word!r}, wanted some of {', '.join(allowed)}{hint}")
        kinds = tuple(Kind(word) for word in value)
        if kinds == (Kind.PASS,):
            raise self._error("key 'kinds': got PASS alone, which is the default; remove the entry or add another kind")
        return kinds

    def _samples(self) -> tuple[str, ...]:
        value = self._data.get("samples", [])
        fits = isinstance(value, list) and all(isinstance(i, (int, str)) and not isinstance(i, bool) for i in value)
        if not fits or ("samples" in self._data and not value):
            raise self._error(f"key 'samples': got {value!r}, wanted a list of sample indices or digests")
        return tuple(str(item) for item in value)

    def _condition(self) -> Condition:
        value = self._data.get("condition", {})
        keys = ("torch", "device", "profile")
        if not isinstance(value, dict) or ("condition" in self._data and not value):
            raise self._error(f"key 'condition': got {value!r}, wanted a table with some of {', '.join(keys)}")
        for key in value:
            if key not in keys:
                raise self._error(f"key 'condition': unknown key {key!r}, wanted some of {', '.join(keys)}")
        torch, device, profile = value.get("torch", ""), value.get("device", ""), value.get("profile", [])
        if not isinstance(torch, str) or (torch and not all(_COMPARISON.fullmatch(part) for part in torch.split(","))):
            raise self._error(f"key 'condition.torch': got {torch!r}, wanted comparisons such as '>=2.14,<2.15'")
        if not isinstance(device, str):
            raise self._error(f"key 'condition.device': got {device!r}, wanted a text")
        profiles = [profile] if isinstance(profile, str) else profile
        if not isinstance(profiles, list) or any(item not in PROFILES for item in profiles):
            raise self._error(f"key 'condition.profile': got {profile!r}, wanted some of {', '.join(PROFILES)}")
        return Condition(torch, device, tuple(profiles))

    def _expires(self) -> str:
        value = self._data.get("expires", "")
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return value.isoformat()
        if value == "" and "expires" not in self._data:
            return ""
        try:
            return datetime.date.fromisoformat(value).isoformat()
        except (TypeError, ValueError) as error:
            raise self._error(f"key 'expires': got {value!r}, wanted a date such as 2027-03-31") from error


def _version_matches(version: str, comparisons: str) -> bool:
    have = _numbers(version)
    for part in comparisons.split(","):
        found = _COMPARISON.fullmatch(part)
        assert found is not None  # checked when the file was read
        operator, want = found[1], _numbers(found[2])
        width = max(len(have), len(want))
        left, right = have + (0,) * (width - len(have)), want + (0,) * (width - len(want))
        result = {
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[operator]
        if not result:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    """The release numbers of a version; what follows them (``+cpu``, ``a0``, ``.dev``) does not count."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
