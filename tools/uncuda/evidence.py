"""Evidence: what the cases of a patch did before and after, and everything that says what exactly was run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from .patch import Patch
from .series import Series

SCHEMA = 1
FILE_NAME = "evidence.json"


class EvidenceError(Exception):
    """An evidence file that cannot be read."""


@dataclass(frozen=True, slots=True)
class CaseEvidence:
    """One named case.

    Attributes:
        id: of the case.
        before: kind of its outcome on plain torch.
        alone: with this patch and no other.
        series: with the whole series.
        message: what the outcome on plain torch said.
    """

    id: str
    before: str
    alone: str
    series: str
    message: str


@dataclass(frozen=True, slots=True)
class DeviceEvidence:
    """What was run on one device.

    Attributes:
        backend: its name on the command line.
        device: the device type.
        device_name: what the device calls itself, or empty.
        build: its own stamp, or empty.
        python: version of the interpreter.
        cases: the named cases on it; empty for the device that must not change.
        guarded: how many other cases were run to see that none changes for the worse.
        worse: ids of those that did, with the kinds; empty in good evidence.
    """

    backend: str
    device: str
    device_name: str
    build: str
    python: str
    cases: tuple[CaseEvidence, ...]
    guarded: int
    worse: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The proof of one patch.

    Attributes:
        topic: the patch.
        patch_digest: of the patch and the cases named for it.
        series_digest: of the whole series that the outcomes ``series`` were made with.
        torch: version of the torch under both runs.
        torch_git: the hash it was built from.
        suite_digest: of the conformance suite.
        commands: what makes this file again.
        devices: the device on which the effect shows, and the CPU, which must not change.
    """

    topic: str
    patch_digest: str
    series_digest: str
    torch: str
    torch_git: str
    suite_digest: str
    commands: tuple[str, ...]
    devices: tuple[DeviceEvidence, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found for one patch.

    Attributes:
        topic: the patch.
        problems: why it is not proven; empty when it is.
        evidence: what to store; with problems it is kept for the report only.
    """

    topic: str
    problems: tuple[str, ...]
    evidence: Evidence


class Standing(str, Enum):
    """What stored evidence is worth now."""

    CURRENT = "current"
    SERIES_CHANGED = "series changed"
    """The patch is the one that was proven, but another patch of the series changed since."""
    STALE = "stale"
    """The patch or its named cases changed since."""
    MISSING = "missing"
    BROKEN = "broken"
    """The file cannot be read, or does not show that every named case was cured."""


def write_evidence(evidence: Evidence, folder: Path) -> Path:
    """Write ``evidence.json`` into a topic folder, in one step."""
    target = folder / FILE_NAME
    part = target.with_suffix(".part")
    part.write_text(json.dumps({"schema": SCHEMA, **asdict(evidence)}, indent=2) + "\n", encoding="utf-8")
    part.replace(target)
    return target


def read_evidence(folder: Path) -> Evidence | None:
    """Read ``evidence.json`` of a topic folder; None when there is none.

    Raises:
        EvidenceError: when it is not of the form that `write_evidence` writes.
    """
    file = folder / FILE_NAME
    if not file.is_file():
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data.pop("schema") != SCHEMA:
            raise ValueError(f"schema is not {SCHEMA}")
        return _evidence(data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EvidenceError(f"{file}: {type(error).__name__}: {error}; `uncuda verify` writes it again") from error


def standing(patch: Patch, series: Series) -> tuple[Standing, str]:
    """What the stored evidence of ``patch`` is worth, and why.

    Args:
        patch: one of the series.
        series: the whole series as it is now.
    """
    try:
        evidence = read_evidence(patch.folder)
    except EvidenceError as error:
        return Standing.BROKEN, str(error)
    if evidence is None:
        return Standing.MISSING, f"run `uncuda verify {patch.topic} --backend NAME`"
    if evidence.patch_digest != patch.digest:
        return Standing.STALE, "the patch or its cases changed since the evidence was made"
    cured = {
        case.id
        for device in evidence.devices
        for case in device.cases
        if case.before != "PASS" and case.alone == case.series == "PASS"
    }
    missing = [case for case in patch.cases if case not in cured]
    if missing or any(device.worse for device in evidence.devices):
        return (
            Standing.BROKEN,
            f"it does not show that {missing[0]} was cured" if missing else "it shows a case made worse",
        )
    if evidence.series_digest != series.digest:
        return Standing.SERIES_CHANGED, "another patch changed since; the outcomes with the whole series are old"
    return Standing.CURRENT, ""


def _evidence(data: dict[str, Any]) -> Evidence:
    devices = []
    for device in data.pop("devices"):
        cases = tuple(CaseEvidence(**case) for case in device.pop("cases"))
        devices.append(DeviceEvidence(cases=cases, worse=tuple(device.pop("worse")), **device))
    return Evidence(commands=tuple(data.pop("commands")), devices=tuple(devices), **data)
