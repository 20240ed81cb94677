"""Judging a random operator: by the generator's state and the distribution of its results, never by values."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .judge import Rules, Verdict, compare, to_tensor
from .result import Draw, Leaf, Raised, leaves_of

REFERENCE_SETS = 6
"""Sets of reference runs; a set of device runs is measured against how far these lie apart."""

CHANCE = 1e-9
"""What is less likely than this is no accident."""

SLACK = 2.0
"""The device's distance may be this many times the largest distance between two sets of the reference."""

LEAST = 2.7
"""And at least this many times ``sqrt(2 / n)``, which sets of ``n`` independent values exceed once in a million."""


@dataclass(slots=True)
class Reference:
    """Runs of a random operator on the CPU: the first set is compared with, the others tell how far sets lie apart."""

    sets: list[list[Any]]


def judge_draws(draws: tuple[Draw, ...], reference: Reference, rules: Rules, verdict: Verdict, where: str) -> None:
    """Judge the runs of a random operator.

    Args:
        draws: runs on the device: the first and the second with the same seed, then one for each further seed.
        reference: runs on the CPU.
        rules: for metadata; values are never compared.
        verdict: receives the problems.
        where: what to call the result.
    """
    for number, draw in enumerate(draws):
        if isinstance(draw.result, Raised):
            verdict.metadata(
                f"{where}, run {number}", "exception", f"{draw.result.type}: {draw.result.message}", "none"
            )
            return
    wanted = reference.sets[0][0]
    on_device = any(one.device == rules.device for _, one in leaves_of(draws[0].result))
    advanced = draws[0].device_advanced if on_device else draws[0].host_advanced
    if not advanced:
        which = rules.device if on_device else "cpu"
        verdict.metadata(where, f"state of the generator of {which} after a random operator", "unchanged", "advanced")
    shape_rules = Rules(rules.tolerance, False, rules.device)
    for number, draw in enumerate(draws):
        compare(draw.result, wanted, shape_rules, f"{where}, run {number}", verdict)
    if verdict.problems:
        return
    if _contents(draws[0].result) != _contents(draws[1].result):
        verdict.problems.append(f"{where}: got different results from the same seed, wanted the same")
    _judge_distribution([draw.result for draw in draws[1:]], reference, verdict, where)


def _judge_distribution(results: list[Any], reference: Reference, verdict: Verdict, where: str) -> None:
    for place, _ in leaves_of(results[0]):
        read = _reader(place)
        sets = [[read(result) for result in one] for one in reference.sets]
        device = [read(result) for result in results]
        if len({leaf.data for leaf in device}) == 1 and _chance_of_one_result(sets, len(device)) < CHANCE:
            verdict.problems.append(f"{where}{place}: got one result from {len(device)} seeds, wanted different ones")
            continue
        pools = [_pool(one) for one in sets]
        pool = _pool(device)
        apart = max(_distance(one, other) for one, other in itertools.combinations(pools, 2))
        allowed = max(SLACK * apart, LEAST * (2 / max(len(pool), 1)) ** 0.5)
        distance = _distance(pool, pools[0])
        if distance > allowed:
            verdict.problems.append(
                f"{where}{place}: got a distribution at Kolmogorov-Smirnov distance {distance:.3f} from the CPU's, "
                f"wanted at most {allowed:.3f} (mean {_mean(pool):.4g} against {_mean(pools[0]):.4g}, "
                f"{len(pool)} values)"
            )


def _chance_of_one_result(sets: list[list[Leaf]], count: int) -> float:
    """How likely ``count`` runs all give one result, going by the share of the reference's commonest result."""
    results = [leaf.data for one in sets for leaf in one]
    ((_, times),) = collections.Counter(results).most_common(1)
    return (times / len(results)) ** count if times < len(results) else 1.0


def _reader(place: str) -> Callable[[Any], Leaf]:
    def read(result: Any) -> Leaf:
        return next(one for where, one in leaves_of(result) if where == place)

    return read


def _pool(results: list[Leaf]) -> torch.Tensor:
    """All values of a leaf over all runs, sorted, complex numbers as two; infinities and NaN at one end."""
    tensors = [to_tensor(leaf).reshape(-1) for leaf in results if leaf.data]
    if not tensors:
        return torch.empty(0, dtype=torch.float64)
    values = torch.cat(tensors)
    if values.is_complex():
        values = torch.view_as_real(values).reshape(-1)
    return values.to(torch.float64).nan_to_num(nan=1e308, posinf=1e307, neginf=-1e307).sort().values


def _distance(left: torch.Tensor, right: torch.Tensor) -> float:
    """The Kolmogorov-Smirnov distance of two sorted samples."""
    if not len(left) or not len(right):
        return 0.0 if len(left) == len(right) else 1.0
    points = torch.cat([left, right])
    one = torch.searchsorted(left, points, right=True).double() / len(left)
    other = torch.searchsorted(right, points, right=True).double() / len(right)
    return float((one - other).abs().max())


def _mean(values: torch.Tensor) -> float:
    return float(values.mean()) if len(values) else 0.0


def _contents(result: Any) -> list[bytes | None]:
    return [one.data for _, one in leaves_of(result)]
