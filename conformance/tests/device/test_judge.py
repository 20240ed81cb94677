"""Judging: metadata exactly, values by tolerance, and no difference that matters is forgiven."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch_conformance.device.judge import Rules, Verdict, compare
from torch_conformance.device.result import capture
from torch_conformance.device.tolerances import EXACT, tolerance

USUAL = functools.partial(tolerance, "exp", "forward", False)


def judge(got: Any, wanted: Any, rules: Rules | None = None) -> Verdict:
    verdict = Verdict()
    compare(capture(got), capture(wanted), rules or Rules(USUAL, True, "cpu"), "output", verdict)
    return verdict


EXACTLY = Rules(lambda dtype: EXACT, True, "cpu", zero_sign=True)
ONES = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("got", "wanted", "says"),
    [
        (torch.ones(2, 3, dtype=torch.float64), ONES, "dtype"),
        (torch.ones(3, 2), ONES, "shape"),
        (torch.ones(3, 2).t(), ONES, "strides"),
        (torch.ones(2, 3).to_sparse(), ONES, "layout"),
        (torch.ones(2, 3, device="meta"), ONES, "device"),
        (torch.ones(2, 3, requires_grad=True), ONES, "requires_grad"),
        ((ONES,), ONES, "type"),
        ([ONES], (ONES,), "type"),
        ((ONES, ONES), (ONES,), "type"),
        (None, ONES, "type"),
        (True, 1, "type"),
        (3, 2, "wanted 2"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "wanted 3"),
        (torch.tensor([True]), torch.tensor([False]), "wanted 0"),
        (torch.tensor([float("nan")]), torch.tensor([1.0]), "nan"),
        (torch.tensor([float("inf")]), torch.tensor([-float("inf")]), "inf"),
        (torch.tensor([1e30]), torch.tensor([float("inf")]), "inf"),
        (torch.tensor([1.0001]), torch.tensor([1.0]), "within"),
        (torch.tensor([1 + 2.001j]), torch.tensor([1 + 2j]), "within"),
        (torch.ones(2, 3).to_sparse() * 2, ONES.to_sparse(), "sparse_coo[1]"),
    ],
)
def test_a_difference_is_found_and_named(got: Any, wanted: Any, says: str) -> None:
    problems = judge(got, wanted).problems
    assert problems
    assert says in "; ".join(problems)


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        (ONES.clone(), ONES),
        (torch.tensor([1.000001]), torch.tensor([1.0])),
        (torch.tensor([float("nan")]), torch.tensor([float("nan")])),
        (torch.tensor([float("inf")]), torch.tensor([float("inf")])),
        (torch.empty(0, 3).as_strided((0, 3), (7, 1)), torch.empty(0, 3)),
        (torch.ones(1, 3).as_strided((1, 3), (99, 1)), torch.ones(1, 3)),
        ((1, None, "mean", ONES), (1, None, "mean", ONES)),
        (torch.tensor([complex("nan+1j")]), torch.tensor([complex("nan+1j")])),
        (float("nan"), float("nan")),
    ],
)
def test_what_is_equal_passes(got: Any, wanted: Any) -> None:
    assert judge(got, wanted).problems == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_tolerances_bite_on_both_sides(dtype: torch.dtype) -> None:
    name = str(dtype).removeprefix("torch.")
    limit = USUAL(name)
    wanted = torch.tensor([8.0], dtype=dtype)
    allowed = limit.absolute + limit.relative * 8.0
    for sign in (1, -1):
        assert judge((wanted + sign * allowed * 4).to(dtype), wanted).problems
        assert not judge((wanted + sign * allowed / 4).to(dtype), wanted).problems


def test_one_unit_in_the_last_place_is_found_where_a_result_is_exact() -> None:
    wanted = torch.tensor([3.0])
    assert judge(torch.nextafter(wanted, torch.tensor(9.0)), wanted, EXACTLY).problems


def test_the_sign_of_zero_is_judged_where_a_result_is_exact_and_not_elsewhere() -> None:
    zero, negative = torch.tensor([0.0]), torch.tensor([-0.0])
    assert judge(negative, zero, EXACTLY).problems
    assert not judge(negative, zero).problems


def test_a_sum_and_a_product_are_exact_unless_they_may_be_fused() -> None:
    assert tolerance("add", "forward", False, "float32") == EXACT
    assert tolerance("add", "forward", True, "float32") != EXACT
    assert tolerance("add", "backward", False, "float32") != EXACT
    assert tolerance("cat", "forward", False, "float16") == EXACT


def test_a_result_that_differs_only_in_bits_is_not_called_bitwise_equal() -> None:
    assert not judge(torch.tensor([1.000001]), torch.tensor([1.0])).bitwise
    assert judge(ONES.clone(), ONES).bitwise


def test_uninitialised_contents_are_not_compared_and_metadata_is() -> None:
    rules = Rules(USUAL, False, "cpu")
    assert not judge(torch.zeros(2), torch.ones(2), rules).problems
    assert judge(torch.zeros(3), torch.ones(2), rules).problems
