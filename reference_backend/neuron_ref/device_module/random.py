"""Random numbers: seeds and states of the default generators, one for each device."""

from collections.abc import Iterable

import torch

from neuron_ref import _C
from neuron_ref.device_module.index import Device, checked_index


def default_generators() -> tuple[torch.Generator, ...]:
    """The generator of each device that operators use when none is given."""
    return tuple(_C.default_generator(index) for index in range(_C.device_count()))


def _get_generator(device: Device) -> torch.Generator:
    """The generator of `device` that operators use when none is given."""
    return _C.default_generator(checked_index(device))


def get_rng_state(device: Device = "neuron") -> torch.Tensor:
    """State of the default generator of `device`, as bytes on the CPU."""
    return _C.default_generator(checked_index(device)).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """States of the default generators of all devices, in order."""
    return [get_rng_state(index) for index in range(_C.device_count())]


def set_rng_state(new_state: torch.Tensor, device: Device = "neuron") -> None:
    """Set the state of the default generator of `device`.

    Args:
        new_state: what `get_rng_state` returned.
        device: which.
    """
    _C.default_generator(checked_index(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Set the states of the default generators, the first state for the first device.

    Raises:
        RuntimeError: there are more states than devices.
    """
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seed the default generator of the current device."""
    _C.default_generator(_C.current_device()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the default generators of all devices; `torch.manual_seed` calls this."""
    for generator in default_generators():
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seed the default generator of the current device with a number that differs from call to call."""
    _C.default_generator(_C.current_device()).seed()


def seed_all() -> None:
    """Seed the default generators of all devices with one number that differs from call to call."""
    generators = default_generators()
    if generators:
        fresh = generators[0].seed()
        for generator in generators[1:]:
            generator.manual_seed(fresh)


def initial_seed() -> int:
    """The seed of the default generator of the current device."""
    return _C.default_generator(_C.current_device()).initial_seed()
