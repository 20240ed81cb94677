"""Samples of an operator case: made once by the oracle from the case's seed, and remade elsewhere when they must be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ..case import Case
from . import forms, internals
from .seeds import case_seed, sample_seed

CAPS = {"smoke": 1, "core": 8}
"""How many samples of a case a profile takes; ``full`` takes all."""

DRAWS = 16
"""Further runs of a random operator, beside the two with the first seed."""

FEW_DRAWS = 4
"""The same, where a result is large or the case has had its `THOROUGH` samples."""

THOROUGH = 4
"""Samples of a random case that get `DRAWS` runs."""

LARGE = 20_000
"""Elements from which on a random operator's result is its own distribution, so that a few runs are enough."""


@dataclass(slots=True)
class Sample:
    """One sample as it travels to the device.

    Attributes:
        index: position in the OpInfo's iterator.
        seed: what the generators are set to before it runs.
        arguments: encoded ``(input, args, kwargs)``; None when the device process must make it itself.
        digest: of the sample.
        backward: whether gradients are wanted.
        cotangents: encoded gradients of the outputs that require one, in order; empty without backward.
        draw_seeds: seeds of further runs, when the operator is random.
    """

    index: int
    seed: int
    arguments: bytes | None
    digest: str
    backward: bool
    cotangents: bytes = b""
    draw_seeds: tuple[int, ...] = ()


@dataclass(slots=True)
class Made:
    """A sample as it was made on the CPU.

    Attributes:
        index: position in the OpInfo's iterator.
        arguments: encoded ``(input, args, kwargs)``, or None when they cannot travel.
        raw: the sample itself.
        digest: of the encoded arguments, or of what can be said of those that cannot travel.
    """

    index: int
    arguments: bytes | None
    raw: internals.RawSample
    digest: str


class SampleSource:
    """The samples of one operator case, in order, whatever else draws random numbers in between."""

    def __init__(self, case: Case, run_seed: int, count: int | None) -> None:
        """Open a case.

        Args:
            case: an operator case.
            run_seed: seed of the run.
            count: at most so many samples; None for all.

        Raises:
            KeyError: for an operator that this torch does not have.
        """
        self.info = internals.op_infos()[case.id.subject]
        self.backward = case.id.behaviour == "backward"
        self.seed = case_seed(str(case.id), run_seed)
        internals.seed_everything(self.seed)
        dtype = getattr(torch, case.id.dtype)
        samples = internals.raw_samples(self.info, "cpu", dtype, self.backward)
        self._samples = samples if count is None else internals.first(samples, count)
        self._state = internals.random_state()
        self.count = 0

    def take(self, limit: int) -> list[Made]:
        """The next samples, at most ``limit`` and fewer at the end or when they are large.

        Several are made in a row because saving the random state costs as much as making a sample.
        """
        internals.set_random_state(self._state)
        made: list[Made] = []
        size = 0
        while len(made) < limit and size < 4 << 20:
            raw = next(self._samples, None)
            if raw is None:
                break
            made.append(self._made(raw))
            size += len(made[-1].arguments or b"")
            self.count += 1
        self._state = internals.random_state()
        return made

    def skip_rest(self) -> int:
        """Count the samples that are left without encoding them."""
        internals.set_random_state(self._state)
        self.count += sum(1 for _ in self._samples)
        return self.count

    def sample_seed(self, index: int) -> int:
        """The seed under which sample ``index`` runs."""
        return sample_seed(self.seed, index)

    def _made(self, raw: internals.RawSample) -> Made:
        try:
            arguments = forms.encode((raw.input, raw.args, raw.kwargs))
        except forms.Unencodable:
            described = forms.encode(
                [repr(raw.kwargs.keys()), len(raw.args), forms.leaves((raw.input, raw.args), torch.Tensor)]
            )
            return Made(self.count, None, raw, forms.digest(described))
        # What the OpInfo applies before a gradient is taken is a lambda: such a sample is made where it runs.
        return Made(self.count, None if self.backward and raw.process else arguments, raw, forms.digest(arguments))


def iterate(case: Case, run_seed: int, wanted: set[int]) -> Iterator[Made]:
    """Make the wanted samples of a case again, in order."""
    source = SampleSource(case, run_seed, max(wanted) + 1 if wanted else 0)
    while made := source.take(64):
        for one in made:
            if one.index in wanted:
                yield one


def arguments_of(raw: internals.RawSample) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The arguments of a sample as one structure."""
    return raw.input, raw.args, raw.kwargs
