"""Random operators: right ones pass under every seed, wrong ones do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch_conformance.device.distribution import REFERENCE_SETS, Reference, judge_draws
from torch_conformance.device.judge import Rules, Verdict
from torch_conformance.device.result import Draw, capture
from torch_conformance.device.tolerances import EXACT

Operator = Callable[[], torch.Tensor]
RULES = Rules(lambda dtype: EXACT, False, "cpu")
DRAWS = 80


def problems(device: Operator, host: Operator, seed: int = 0, draws: int = DRAWS, advanced: bool = True) -> str:
    def run(operator: Operator, with_seed: int) -> object:
        torch.manual_seed(with_seed)
        return capture(operator())

    seeds = [seed, seed, *range(seed + 1, seed + draws)]
    got = tuple(Draw(run(device, one), advanced, advanced) for one in seeds)
    sets = [[run(host, 10_000 * (number + 1) + seed + one) for one in range(draws)] for number in range(REFERENCE_SETS)]
    verdict = Verdict()
    judge_draws(got, Reference(sets), RULES, verdict, "output")
    return "; ".join(verdict.problems)


def normal() -> torch.Tensor:
    return torch.randn(25)


def dropped_channels() -> torch.Tensor:
    return torch.nn.functional.dropout2d(torch.ones(1, 4, 3, 3), 0.5)


def permuted() -> torch.Tensor:
    return torch.randperm(25)


def flipped() -> torch.Tensor:
    return torch.bernoulli(torch.full((25,), 0.3))


def nearly_sure() -> torch.Tensor:
    return torch.bernoulli(torch.tensor(0.97))


@pytest.mark.parametrize("operator", [normal, dropped_channels, permuted, flipped, nearly_sure])
def test_the_same_distribution_passes_under_every_seed(operator: Operator) -> None:
    assert [problems(operator, operator, 1_000 * seed, draws=12) for seed in range(12)] == [""] * 12


@pytest.mark.parametrize(
    ("device", "host"),
    [
        (lambda: torch.randn(25) * 1.6, normal),
        (lambda: torch.randn(25) + 0.3, normal),
        (lambda: torch.rand(25), normal),
        (lambda: torch.bernoulli(torch.full((25,), 0.45)), flipped),
        (lambda: torch.nn.functional.dropout2d(torch.ones(1, 4, 3, 3), 0.2), dropped_channels),
    ],
)
def test_another_distribution_is_found(device: Operator, host: Operator) -> None:
    assert "distribution" in problems(device, host)


def test_an_operator_that_ignores_the_seed_is_found() -> None:
    assert "one result from" in problems(lambda: torch.arange(25.0), normal)


def test_a_generator_that_did_not_advance_is_found() -> None:
    assert "wanted advanced" in problems(normal, normal, advanced=False)


def test_different_results_from_one_seed_are_found() -> None:
    count = [0]

    def unseeded() -> torch.Tensor:
        count[0] += 1
        return torch.randn(25, generator=torch.Generator().manual_seed(count[0]))

    assert "same seed" in problems(unseeded, normal)
