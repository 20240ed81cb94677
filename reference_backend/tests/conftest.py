"""Activates the device once in each test process, and lets no test leave anything switched."""

from collections.abc import Iterator
from types import ModuleType

import neuron_ref
import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def activated() -> None:
    neuron_ref.activate()


@pytest.fixture(autouse=True)
def restored(activated: None) -> Iterator[None]:
    """Devices, streams, faults, autocast and random state are after a test what they were before it."""
    neuron = torch.get_device_module("neuron")
    state = torch.get_rng_state(), neuron.get_rng_state_all()
    yield
    from neuron_ref import faults

    faults.clear()
    for index in range(neuron.device_count()):
        neuron.set_stream(neuron.default_stream(index))
    neuron.set_device(0)
    torch.set_autocast_enabled("neuron", False)
    torch.set_rng_state(state[0])
    neuron.set_rng_state_all(state[1])


@pytest.fixture
def neuron(activated: None) -> ModuleType:
    """The module ``torch.neuron``."""
    return torch.get_device_module("neuron")
