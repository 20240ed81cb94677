"""Run the named cases of each patch before and after, on a device and on the CPU, through the conformance suite.

This is the one module of the package that imports `torch_conformance`. Two runs differ in nothing but the overlay.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch_conformance import digest
from torch_conformance.backend import Backend, BackendSpec
from torch_conformance.discovery import find_backend
from torch_conformance.errors import ConformanceError
from torch_conformance.interpreter import ask
from torch_conformance.plan import load_plan
from torch_conformance.session import Session

from .effect import Seen, changed, made_worse, not_cured
from .evidence import CaseEvidence, DeviceEvidence, Evidence, Proof
from .overlay import Overlay, make_overlay
from .patch import Patch
from .series import Series
from .tree import TorchTree, read_tree

UNTOUCHED = "cpu"
"""The device on which no patch may change anything."""


class VerifyError(Exception):
    """A verification that cannot be made; ``exit_code`` is 2 for wrong usage, 3 for a backend that does not start."""

    def __init__(self, text: str, exit_code: int = 2) -> None:
        super().__init__(text)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class _Run:
    """Outcomes of one device on one torch tree."""

    backend: Backend
    outcomes: dict[str, Seen]


def verify(
    series: Series,
    topics: Sequence[str],
    backend: str,
    overlays: Path,
    command: str,
    say: Callable[[str], None] = lambda text: None,
    quick: bool = False,
) -> list[Proof]:
    """Prove patches of ``series``: each alone, and all of them together.

    Args:
        series: the whole series.
        topics: which of its patches to prove.
        backend: as `torch-conformance --backend` takes it; the effects must show on it.
        overlays: a folder for patched trees; those of an earlier verification are used again.
        command: what to write down as the command that makes the evidence again.
        say: takes one line of progress.
        quick: run only the families of the named cases instead of every clause; no evidence to store.

    Raises:
        VerifyError: when the backend is unknown or does not start, or the overlay would not be what is imported.
        OverlayError: when a patch does not apply, or the interpreter's torch is of another version.
    """
    try:
        spec = find_backend(backend)
        tree = _tree_of(spec)
        chosen = series.select(topics)
        bench = _Bench(spec, tree, overlays, series, _families(chosen.patches) if quick else None, say)
        return [bench.prove(patch, command) for patch in chosen.patches]
    except ConformanceError as error:
        raise VerifyError(str(error), error.exit_code) from error


class _Bench:
    """The two devices, and the runs on them that several proofs share."""

    def __init__(
        self,
        spec: BackendSpec,
        tree: TorchTree,
        overlays: Path,
        series: Series,
        guard: tuple[str, ...] | None,
        say: Callable[[str], None],
    ) -> None:
        self._device = spec
        # The same interpreter and torch, with the backend left out.
        self._cpu = dataclasses.replace(find_backend(UNTOUCHED), python=spec.python)
        self._tree = tree
        self._overlays = overlays
        self._series = series
        self._guard = guard
        self._say = say
        self._done: dict[tuple[str, str, tuple[str, ...] | None], _Run] = {}
        # Before any run: a series that does not apply must not cost one.
        self._whole = self._overlay(series)

    def prove(self, patch: Patch, command: str) -> Proof:
        alone = self._overlay(self._series.select([patch.topic]))
        families = _families((patch,))
        before = self._run(self._device, None, self._guard)
        after = self._run(self._device, alone, families)
        together = self._run(self._device, self._whole, self._guard)
        near = {name: seen for name, seen in before.outcomes.items() if name.partition("/")[0] in families}
        problems = [f"alone: {text}" for text in not_cured(patch.cases, before.outcomes, after.outcomes)]
        problems += [f"series: {text}" for text in not_cured(patch.cases, before.outcomes, together.outcomes)]
        worse = made_worse(near, after.outcomes)
        worse += [text for text in made_worse(before.outcomes, together.outcomes) if text not in worse]
        cpu_before = self._run(self._cpu, None, self._guard)
        cpu_after = self._run(self._cpu, alone, families)
        cpu_together = self._run(self._cpu, self._whole, self._guard)
        cpu_near = {name: seen for name, seen in cpu_before.outcomes.items() if name.partition("/")[0] in families}
        moved = changed(cpu_near, cpu_after.outcomes)
        moved += [text for text in changed(cpu_before.outcomes, cpu_together.outcomes) if text not in moved]
        problems += [f"worse on {self._device.name}: {text}" for text in worse]
        problems += [f"changed on {self._cpu.name}: {text}" for text in moved]
        cases = tuple(
            CaseEvidence(
                id=case,
                before=_kind(before, case),
                alone=_kind(after, case),
                series=_kind(together, case),
                message=before.outcomes[case].message if case in before.outcomes else "",
            )
            for case in patch.cases
        )
        evidence = Evidence(
            topic=patch.topic,
            patch_digest=patch.digest,
            series_digest=self._series.digest,
            torch=before.backend.torch,
            torch_git=before.backend.torch_git,
            suite_digest=digest.of_suite(),
            commands=(command,),
            devices=(
                _device_evidence(before, cases, len(before.outcomes) - len(cases), worse),
                _device_evidence(cpu_before, (), len(cpu_before.outcomes), moved),
            ),
        )
        return Proof(patch.topic, tuple(problems), evidence)

    def _overlay(self, series: Series) -> Overlay:
        return make_overlay(series, self._tree, self._overlays / f"{self._tree.base}-{series.digest[:16]}")

    def _run(self, spec: BackendSpec, overlay: Overlay | None, families: tuple[str, ...] | None) -> _Run:
        """All clauses of ``families`` (None: of every family) and the named cases of the series among them."""
        key = (spec.name, overlay.series_digest if overlay else "", families)
        if key not in self._done:
            self._done[key] = self._run_now(spec, overlay, families)
        return self._done[key]

    def _run_now(self, spec: BackendSpec, overlay: Overlay | None, families: tuple[str, ...] | None) -> _Run:
        where = "plain torch" if overlay is None else overlay.topics[0]
        if overlay is self._whole:
            where = f"the whole series ({len(self._series.patches)} topics)"
        if overlay is not None:
            spec = dataclasses.replace(spec, path=(str(overlay.folder), *spec.path), env={**spec.env, **overlay.env})
            found = Path(ask(spec).torch_folder)
            if found != (overlay.folder / "torch").resolve():
                raise VerifyError(f"{spec.name} would import torch from {found}, wanted the overlay {overlay.folder}")
        named = {case for patch in self._series.patches for case in patch.cases}
        chosen_families = families or self._clause_families(spec)
        plan = load_plan(spec, families=chosen_families)
        chosen = [
            case
            for case in plan.cases
            if case.id.family in chosen_families and (not case.sampled or str(case.id) in named)
        ]
        self._say(f"{spec.name}: {len(chosen)} cases with {where}")
        op_db = any(case.sampled for case in chosen)
        with Session(spec, profile="core", cases=plan.by_id, op_db=op_db) as session:
            backend = session.start()
            outcomes = {str(case.id): session.run(case) for case in chosen}
        return _Run(backend, {name: Seen(out.kind.value, out.message) for name, out in outcomes.items()})

    def _clause_families(self, spec: BackendSpec) -> tuple[str, ...]:
        """Families without sampled cases, and those of the named cases: known from the plan of plain torch.

        Asking an overlay for these alone saves importing op_db there.
        """
        plain = self._cpu if spec.name == self._cpu.name else self._device
        clauses = [case.id.family for case in load_plan(plain).cases if not case.sampled]
        return tuple(dict.fromkeys([*clauses, *_families(self._series.patches)]))


def _families(patches: Sequence[Patch]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(case.partition("/")[0] for patch in patches for case in patch.cases))


def _tree_of(spec: BackendSpec) -> TorchTree:
    folder = ask(spec).torch_folder
    if not folder:
        raise VerifyError(f"{spec.name}: its interpreter has no torch; install torch 2.13.0 there", 3)
    return read_tree(Path(folder))


def _kind(run: _Run, case: str) -> str:
    return run.outcomes[case].kind if case in run.outcomes else "NOT_THERE"


def _device_evidence(run: _Run, cases: tuple[CaseEvidence, ...], guarded: int, worse: Sequence[str]) -> DeviceEvidence:
    backend = run.backend
    return DeviceEvidence(
        backend=backend.spec.name,
        device=backend.spec.device,
        device_name=backend.device_name,
        build=backend.build,
        python=backend.python,
        cases=cases,
        guarded=guarded,
        worse=tuple(worse),
    )
