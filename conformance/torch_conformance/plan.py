"""The plan: every case that the suite has for a backend, listed once by a device process and kept on disk."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import codec, digest
from .backend import BackendSpec
from .case import Case
from .errors import BackendStartError, UsageError
from .interpreter import ask, program

SCHEMA = 1
KEPT_PLANS = 64


@dataclass(frozen=True)
class Plan:
    """All cases of a backend, for every profile, in plan order.

    Attributes:
        cases: the cases.
        key: what the plan depends on, as one digest.
    """

    cases: tuple[Case, ...]
    key: str

    @functools.cached_property
    def by_id(self) -> dict[str, Case]:
        """The cases by their id as text."""
        return {str(case.id): case for case in self.cases}

    @functools.cached_property
    def digest(self) -> str:
        """A digest of the ids: two runs with the same one had the same cases to choose from."""
        return digest.of_texts(self.by_id)

    @property
    def families(self) -> tuple[str, ...]:
        """The families in plan order."""
        return tuple(dict.fromkeys(case.id.family for case in self.cases))


def load_plan(spec: BackendSpec, *, families: Sequence[str] | None = None) -> Plan:
    """The plan of a backend, from disk when nothing that it depends on has changed.

    Args:
        spec: the backend.
        families: a hint that no other families are needed, which saves importing op_db for a listing; the plan may
            hold more than these, and prerequisites of their cases are always there.

    Raises:
        BackendStartError: when the plan must be listed and the backend cannot be started.
    """
    key = plan_key(spec)
    full = _read(key)
    if full is not None:
        return full
    if families is not None:
        part_key = digest.of_texts([key, *sorted(families)])
        part = _read(part_key)
        if part is None:
            with contextlib.suppress(UsageError):  # an unknown family: the whole plan knows what is near
                part = _write(Plan(_list(spec, families), part_key))
        if part is not None and all(name in part.by_id for case in part.cases for name in case.requires):
            return part
    return _write(Plan(_list(spec, None), key))


def plan_key(spec: BackendSpec) -> str:
    """A digest of everything that decides which cases exist.

    Two torch trees with one version number must not share a plan, so the real path of ``torch/`` and the overlay count.

    Raises:
        BackendStartError: when the device interpreter cannot be asked.
    """
    top = spec.module.partition(".")[0]
    facts = ask(spec, *([top] if top else []))
    if not facts.torch_folder:
        raise BackendStartError(
            f"{spec.name}: there is no torch in {program(spec)}. Install torch, numpy and expecttest there, or name "
            "another interpreter with the key 'python' of a spec file."
        )
    place = facts.modules.get(top) if top else None
    module = Path(place.folder or place.file) if place else None
    parts = [
        str(SCHEMA),
        os.path.realpath(program(spec)),
        facts.python,
        facts.torch_folder,
        *(f"{name}={version}" for name, version in sorted(facts.packages.items())),
        _torch_state(Path(facts.torch_folder)),
        digest.of_overlays(spec.path),
        digest.of_suite(),
        codec.dumps(spec),
        digest.of_folder(module) if module is not None and module.exists() else "",
    ]
    return digest.of_texts(parts)


def _torch_state(folder: Path) -> str:
    """Version and git hash as the tree itself states them; metadata may name another tree."""
    with contextlib.suppress(OSError):
        return (folder / "version.py").read_text(encoding="utf-8")
    return ""


def _list(spec: BackendSpec, families: Sequence[str] | None) -> tuple[Case, ...]:
    from .session import Session

    with Session(spec, op_db=families is None) as session:
        return tuple(session.list_cases(families))


def cache_folder() -> Path:
    """Where plans are kept: below ``XDG_CACHE_HOME``, else ``~/.cache``."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(root) / "torch_conformance" / "plans"


def _read(key: str) -> Plan | None:
    file = cache_folder() / f"{key}.json"
    try:
        text = file.read_text(encoding="utf-8")
        plan = Plan(tuple(codec.cases_from_rows(text)), key)
    except (OSError, ValueError):
        return None  # absent, or torn by another writer's crash: listed again
    with contextlib.suppress(OSError):
        file.touch()  # the least recently used are removed first
    return plan


def _write(plan: Plan) -> Plan:
    folder = cache_folder()
    # A cache that cannot be written costs time, not the command.
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, suffix=".part", delete=False) as part:
            part.write(codec.cases_to_rows(plan.cases))
        Path(part.name).replace(folder / f"{plan.key}.json")
        old = sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-KEPT_PLANS]
        for file in old:
            file.unlink(missing_ok=True)
    return plan


def save_selection(cases: Sequence[Case], file: Path) -> None:
    """Write the chosen cases for the workers, in the order in which they are to be run."""
    file.write_text(codec.cases_to_rows(cases), encoding="utf-8")


def read_selection(file: Path) -> list[Case]:
    """Read what `save_selection` wrote."""
    try:
        return codec.cases_from_rows(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{file} is not a list of cases: {error}") from error
