"""Samples of an operator case: made once by the oracle from the case's seed, and remade elsewhere when they must be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from ..case import Case
from . import forms, internals
from .seeds import case_seed, sample_seed

T = TypeVar("T")

CAPS = {"smoke": 1, "core": 8}
"""How many samples of a case a profile takes, spread over all that there are; ``full`` takes all."""

POOL = 2_000
"""Values wanted of a random operator's result over all its runs."""

MOST_DRAWS = 100
FEWEST_DRAWS = 8
"""Runs of a random operator whose distribution is judged, whatever it takes to get `POOL` values."""

FEW_DRAWS = 4
"""Runs where that would take long: with gradients, or after the first `THOROUGH` random samples of a case."""

THOROUGH = 4
"""Samples of a random case that get a whole pool."""


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
            count: so many samples, spread evenly over all; None for all.

        Raises:
            KeyError: for an operator that this torch does not have.
        """
        self.info = internals.op_infos()[case.id.subject]
        self.backward = case.id.behaviour == "backward"
        self.seed = case_seed(str(case.id), run_seed)
        internals.seed_everything(self.seed)
        dtype = getattr(torch, case.id.dtype)
        samples = enumerate(internals.raw_samples(self.info, "cpu", dtype, self.backward))
        self._samples = samples if count is None else iter(_spread(list(samples), count))
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
            numbered = next(self._samples, None)
            if numbered is None:
                break
            made.append(self._made(*numbered))
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

    def _made(self, index: int, raw: internals.RawSample) -> Made:
        try:
            arguments = forms.encode((raw.input, raw.args, raw.kwargs))
        except forms.Unencodable:
            described = forms.encode(
                [repr(raw.kwargs.keys()), len(raw.args), forms.leaves((raw.input, raw.args), torch.Tensor)]
            )
            return Made(index, None, raw, forms.digest(described))
        # What the OpInfo applies before a gradient is taken is a lambda: such a sample is made where it runs.
        return Made(index, None if self.backward and raw.process else arguments, raw, forms.digest(arguments))


def iterate(case: Case, run_seed: int, wanted: set[int]) -> Iterator[Made]:
    """Make the wanted samples of a case again, in order."""
    source = SampleSource(case, run_seed, None)
    while made := source.take(64):
        if made[0].index > max(wanted):
            return
        for one in made:
            if one.index in wanted:
                yield one


def draw_count(elements: int, backward: bool, earlier: int) -> int:
    """How many runs of a random operator judge its distribution.

    Args:
        elements: of its result.
        backward: whether each run takes gradients.
        earlier: random samples of the case so far.
    """
    if backward or earlier >= THOROUGH:
        return FEW_DRAWS
    return min(max(POOL // max(elements, 1), FEWEST_DRAWS), MOST_DRAWS)


def _spread(samples: list[T], count: int) -> list[T]:
    """``count`` items, evenly spread, the middle one when it is one."""
    if len(samples) <= count:
        return samples
    if count == 1:
        return [samples[len(samples) // 2]]
    return [samples[number * (len(samples) - 1) // (count - 1)] for number in range(count)]


def arguments_of(raw: internals.RawSample) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The arguments of a sample as one structure."""
    return raw.input, raw.args, raw.kwargs
