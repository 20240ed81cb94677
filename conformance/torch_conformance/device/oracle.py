"""One open case of the oracle: its samples, their references, and the judgement of what came back."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import torch

from ..case import Case
from ..outcome import FailedSample, Kind, Observation
from . import forms, internals
from .distribution import REFERENCE_SETS, Reference, judge_draws
from .execution import Ran, backward, differentiable, place, run
from .judge import Rules, Verdict, compare
from .result import Leaf, Raised, Result, capture, leaf, leaves_of, tensors_of
from .sample import CAPS, Made, Sample, SampleSource, arguments_of, draw_count
from .seeds import sample_seed
from .tolerances import MOVES, UNINITIALISED, tolerance

CPU = torch.device("cpu")
BATCH = 64
"""Samples in one batch, at most."""


@dataclass(slots=True)
class _Known:
    """What the oracle keeps of a sample until it is judged."""

    made: Made
    ran: Ran
    inputs: tuple[Leaf, ...] | None
    reference: Reference | None


@dataclass(slots=True)
class Judged:
    """Judgement of some samples."""

    failed: list[FailedSample] = field(default_factory=list)
    bitwise_equal: int = 0
    traceback: str = ""


class OpenCase:
    """An operator case from ``open`` to ``close``."""

    def __init__(self, case: Case, seed: int, profile: str, only: frozenset[int] | None) -> None:
        """Open it.

        Args:
            case: an operator case.
            seed: seed of the run.
            profile: decides how many samples are taken.
            only: indices of the samples that are wanted; None for all.

        Raises:
            KeyError: for an operator that this torch does not have.
        """
        self.case = case
        self.operator = case.id.subject
        self.only = only
        self.source = SampleSource(case, seed, CAPS.get(profile))
        self.known: dict[int, _Known] = {}
        self.bitwise = 0
        self.random_samples = 0
        self._ended = False

    def next_batch(self) -> tuple[list[Sample], bool]:
        """The next samples with their references computed, and whether there may be more."""
        self.known = {}
        samples: list[Sample] = []
        while not samples and not self._ended:
            made = self.source.take(BATCH)
            self._ended = not made
            samples = [self._prepare(one) for one in made if self.only is None or one.index in self.only]
        return samples, not self._ended

    def judge(self, indices: list[int], results: dict[int, Result]) -> Judged:
        """Judge results of the last batch.

        Raises:
            KeyError: for an index that is not of that batch or has no result.
        """
        judged = Judged()
        for index in indices:
            kind, message, trace, bitwise = self._judge_one(self.known[index], results[index])
            judged.bitwise_equal += bitwise
            if kind is not Kind.PASS:
                made = self.known[index].made
                text = f"{message}; {self._call(made)}"
                judged.failed.append(FailedSample(index, made.digest, kind, text))
                judged.traceback = judged.traceback or trace
        self.bitwise += judged.bitwise_equal
        return judged

    def close(self) -> tuple[int, Observation]:
        """How many samples were planned, and what was seen beside the verdicts."""
        count = (
            self.source.skip_rest() if self.only is None else len([i for i in self.only if i < self.source.skip_rest()])
        )
        return count, Observation(bitwise_equal=self.bitwise)

    def _prepare(self, made: Made) -> Sample:
        seed = self.source.sample_seed(made.index)
        behaviour_backward = self.source.backward
        sample = Sample(made.index, seed, made.arguments, made.digest, behaviour_backward)
        arguments, process = self._arguments(made), made.raw.process if behaviour_backward else None
        sent = [leaf(tensor) for tensor in tensors_of(arguments)]
        torch.default_generator.manual_seed(seed)
        state = torch.default_generator.get_state()
        ran = run(self.source.info.op, arguments, process)
        random = not torch.equal(state, torch.default_generator.get_state())
        cotangents: list[torch.Tensor] = []
        if behaviour_backward and ran.raw is not None:
            cotangents = [_cotangent(output) for output in differentiable(ran.raw)]
            sample.cotangents = forms.encode(cotangents)
            cotangents = forms.Placer(CPU).place(forms.decode(sample.cotangents))
            state = torch.default_generator.get_state()
            backward(ran, arguments, cotangents)
            random = random or not torch.equal(state, torch.default_generator.get_state())
        now = [leaf(tensor) for tensor in tensors_of(arguments)]
        reference = None
        if random and not isinstance(ran.outputs, Raised):
            count = draw_count(self._elements(ran), self.source.backward, self.random_samples)
            self.random_samples += 1
            seeds = tuple(sample_seed(seed, number) for number in range(count))
            sample.draw_seeds = (seed, *seeds)
            reference = self._reference(made, seed, count, process, sample.cotangents)
        ran.raw = None
        self.known[made.index] = _Known(made, ran, None if now == sent else tuple(now), reference)
        return sample

    def _arguments(self, made: Made) -> Any:
        """Fresh arguments on the CPU: the reference must not touch what others get."""
        if made.arguments is not None:
            return place(self.operator, forms.decode(made.arguments), CPU)
        lifted = forms.map_structure(
            arguments_of(made.raw), torch.Tensor, lambda item: forms.decode(forms.encode(item))
        )
        return place(self.operator, lifted, CPU)

    def _elements(self, ran: Ran) -> int:
        found = 0
        for _, one in leaves_of(ran.outputs):
            count = 1
            for length in one.shape:
                count *= length
            found += count
        return found

    def _reference(self, made: Made, seed: int, count: int, process: Any, cotangents: bytes) -> Reference:
        sets: list[list[Any]] = []
        for number in range(REFERENCE_SETS):
            results = []
            for draw in range(count + 1):
                arguments = self._arguments(made)
                torch.default_generator.manual_seed(sample_seed(seed, 1_000 * (number + 1) + draw))
                ran = run(self.source.info.op, arguments, process)
                if cotangents and ran.raw is not None:
                    backward(ran, arguments, forms.Placer(CPU).place(forms.decode(cotangents)))
                results.append(ran.outputs if ran.gradients is None else (ran.outputs, *ran.gradients))
            sets.append(results)
        return Reference(sets)

    def _judge_one(self, known: _Known, result: Result) -> tuple[Kind, str, str, bool]:
        """Kind, message, traceback, and whether it was equal bit by bit."""
        got, wanted = result.outputs, known.ran.outputs
        if result.digest and result.digest != known.made.digest:
            return (
                Kind.ORACLE_BROKEN,
                f"got the sample {result.digest} in the device process, wanted {known.made.digest} from the same seed",
                "",
                False,
            )
        if isinstance(wanted, Raised):
            if isinstance(got, Raised):
                return Kind.PASS, "", "", False
            text = f"the CPU reference raised {wanted.type}: {_short(wanted.message)}, and the device did not"
            return Kind.ORACLE_BROKEN, text, wanted.traceback, False
        if isinstance(got, Raised):
            return Kind.RAISED, f"{got.type}: {_short(got.message)}", got.traceback, False
        verdict = Verdict()
        rules = Rules(
            functools.partial(tolerance, self.operator, self.case.id.behaviour, "alpha" in known.made.raw.kwargs),
            known.reference is None and self.operator not in UNINITIALISED,
            "cpu" if _stays_on_host(known.made.raw) else result.device,
            self.operator in MOVES and not self.source.backward,
        )
        if known.reference is not None:
            compare(got, wanted, rules, "output", verdict)
            judge_draws(result.draws, known.reference, rules, verdict, "result")
            verdict.bitwise = False
        else:
            compare(got, wanted, rules, "output", verdict)
            if verdict.problems and verdict.value_problems and known.made.raw.process is not None:
                self._compare_processed(known, got, rules, verdict)
            if self.source.backward:
                compare(result.gradients, known.ran.gradients, rules, "gradient", verdict)
        self._compare_inputs(known, result, rules, verdict)
        if verdict.problems:
            return Kind.MISMATCH, "; ".join(verdict.problems[:3]), "", False
        return Kind.PASS, "", "", verdict.bitwise and rules.values

    def _compare_inputs(self, known: _Known, result: Result, rules: Rules, verdict: Verdict) -> None:
        """An operator changes the inputs that the reference changes, to the same values, and no others."""
        if result.inputs is None and known.inputs is None:
            return
        if result.inputs is None:
            verdict.problems.append("input: got no change, wanted the in-place change that the CPU makes")
            return
        if known.inputs is None:
            wanted = tuple(leaf(tensor) for tensor in tensors_of(self._arguments(known.made)))
        else:
            wanted = known.inputs
        for index, (one, other) in enumerate(zip(result.inputs, wanted, strict=True)):
            place_rules = Rules(rules.tolerance, rules.values, one.device, rules.zero_sign)
            compare(one, other, place_rules, f"input {index} afterwards", verdict)

    def _compare_processed(self, known: _Known, got: Any, rules: Rules, verdict: Verdict) -> None:
        """Forgive values that the OpInfo calls arbitrary (a sign, a phase) when what it derives from them agrees."""
        try:
            derived = [known.made.raw.process(_rebuild(one)) for one in (got, known.ran.outputs)]
        except Exception:
            return  # what the device gave cannot even be put through it: the differences stand
        second = Verdict()
        here = Rules(rules.tolerance, True, "cpu")
        compare(capture(derived[0]), capture(derived[1]), here, "output (as its OpInfo compares it)", second)
        verdict.problems = second.problems

    def _call(self, made: Made) -> str:
        """The call in short: shapes and dtypes instead of values."""

        def short(value: Any) -> str:
            if isinstance(value, torch.Tensor):
                return f"{internals.dtype_name(value.dtype)}{list(value.shape)}"
            if isinstance(value, (list, tuple)):
                return f"[{', '.join(short(item) for item in value)}]"
            return repr(value)[:60]

        raw = made.raw
        parts = [short(raw.input), *(short(item) for item in raw.args)]
        parts += [f"{key}={short(value)}" for key, value in raw.kwargs.items()]
        return f"{self.operator}({', '.join(parts)})"[:400]


def _stays_on_host(raw: internals.RawSample) -> bool:
    """Whether a call names no device and takes no tensor, so that its result belongs on the CPU."""
    return "device" not in raw.kwargs and not tensors_of(arguments_of(raw)) and "cpu" not in raw.args


def _cotangent(output: torch.Tensor) -> torch.Tensor:
    """A random gradient for an output, drawn from the CPU generator as it stands."""
    if output.layout != torch.strided:
        return (
            torch.randn(output.shape, dtype=output.dtype).to_sparse() if output.is_sparse else torch.ones_like(output)
        )
    return torch.randn(output.shape, dtype=output.dtype)


def _rebuild(value: Any) -> Any:
    """A captured result as CPU tensors and tuples."""
    if isinstance(value, Leaf):
        dtype = getattr(torch, value.dtype)
        if not value.data:
            return torch.empty(value.shape, dtype=dtype)
        return torch.frombuffer(bytearray(value.data), dtype=dtype).reshape(value.shape)
    items = getattr(value, "items", None)
    return tuple(_rebuild(item) for item in items) if isinstance(items, tuple) else value


def _short(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:4])[:500]
