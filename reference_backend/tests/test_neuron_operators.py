"""torch.neuron: counting operators."""

from collections.abc import Iterator
from types import ModuleType

import pytest
import torch


@pytest.fixture(autouse=True)
def forgotten(neuron: ModuleType) -> Iterator[None]:
    neuron.clear_op_tracking()
    yield
    neuron.set_op_tracking(False)
    neuron.clear_op_tracking()


def test_operators_are_counted_while_counting_is_on(neuron: ModuleType) -> None:
    x = torch.ones(2, device="neuron")
    torch.relu(x)
    assert neuron.get_executed_ops() == {}
    neuron.set_op_tracking(True)
    torch.relu(x)
    torch.relu(x)
    neuron.set_op_tracking(False)
    torch.relu(x)
    assert sum(count for name, count in neuron.get_executed_ops().items() if "relu" in name) == 2


def test_what_was_counted_can_be_forgotten(neuron: ModuleType) -> None:
    neuron.set_op_tracking(True)
    torch.relu(torch.ones(2, device="neuron"))
    neuron.clear_op_tracking()
    assert neuron.get_executed_ops() == {}


def test_no_operator_falls_back_where_all_run_on_the_device(neuron: ModuleType) -> None:
    neuron.set_op_tracking(True)
    torch.linalg.svd(torch.ones(3, 3, device="neuron"))
    assert neuron.get_executed_ops()
    assert not neuron.get_fallback_ops()
