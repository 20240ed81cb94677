"""torch.neuron: seeds, states, generators."""

from types import ModuleType

import pytest
import torch


def _draw(device: str = "neuron:0", generator: torch.Generator | None = None) -> list[float]:
    return torch.rand(16, device=device, generator=generator).cpu().tolist()


def test_the_same_seed_draws_the_same_numbers(neuron: ModuleType) -> None:
    neuron.manual_seed(7)
    first, second = _draw(), _draw()
    neuron.manual_seed(7)
    assert [_draw(), _draw()] == [first, second]
    assert first != second


def test_different_seeds_draw_different_numbers(neuron: ModuleType) -> None:
    neuron.manual_seed(1)
    first = _draw()
    neuron.manual_seed(2)
    assert _draw() != first


def test_manual_seed_seeds_the_current_device_only(neuron: ModuleType) -> None:
    neuron.manual_seed_all(1)
    other = neuron.get_rng_state(1)
    neuron.manual_seed(2)
    assert torch.equal(neuron.get_rng_state(1), other)
    assert not torch.equal(neuron.get_rng_state(0), other)


def test_seeding_torch_seeds_every_device(neuron: ModuleType) -> None:
    torch.manual_seed(3)
    first = [_draw("neuron:0"), _draw("neuron:1")]
    torch.manual_seed(3)
    assert [_draw("neuron:0"), _draw("neuron:1")] == first
    assert neuron.initial_seed() == 3


def test_a_fresh_seed_differs_from_call_to_call(neuron: ModuleType) -> None:
    neuron.seed()
    first = neuron.initial_seed()
    neuron.seed()
    assert neuron.initial_seed() != first


def test_seed_all_gives_every_device_the_same_fresh_seed(neuron: ModuleType) -> None:
    neuron.seed_all()
    seeds = {generator.initial_seed() for generator in neuron.default_generators}
    assert len(seeds) == 1


def test_initial_seed_is_that_of_the_current_device(neuron: ModuleType) -> None:
    neuron.manual_seed_all(1)
    with neuron.device(1):
        neuron.manual_seed(5)
        assert neuron.initial_seed() == 5
    assert neuron.initial_seed() == 1


@pytest.mark.parametrize("device", [0, 1, "neuron:1"])
def test_a_state_that_is_set_again_draws_the_same_numbers(neuron: ModuleType, device: int | str) -> None:
    where = device if isinstance(device, str) else f"neuron:{device}"
    _draw(where)
    state = neuron.get_rng_state(device)
    first = _draw(where)
    neuron.set_rng_state(state, device)
    assert _draw(where) == first


def test_a_state_is_sixteen_bytes_on_the_cpu(neuron: ModuleType) -> None:
    state = neuron.get_rng_state()
    assert (state.device.type, state.dtype, state.numel()) == ("cpu", torch.uint8, 16)


def test_a_state_does_not_change_with_the_generator_it_came_from(neuron: ModuleType) -> None:
    state = neuron.get_rng_state()
    copy = state.clone()
    _draw()
    assert torch.equal(state, copy)


def test_a_state_of_another_size_is_refused(neuron: ModuleType) -> None:
    with pytest.raises(RuntimeError):
        neuron.set_rng_state(torch.zeros(3, dtype=torch.uint8))


def test_the_states_of_all_devices_are_set_in_order(neuron: ModuleType) -> None:
    states = neuron.get_rng_state_all()
    assert len(states) == neuron.device_count()
    first = [_draw("neuron:0"), _draw("neuron:1")]
    neuron.set_rng_state_all(states)
    assert [_draw("neuron:0"), _draw("neuron:1")] == first


def test_more_states_than_devices_are_refused(neuron: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="invalid device index 2"):
        neuron.set_rng_state_all([*neuron.get_rng_state_all(), neuron.get_rng_state(0)])


def test_the_default_generators_are_those_that_operators_use(neuron: ModuleType) -> None:
    neuron.default_generators[1].manual_seed(11)
    expected = _draw("neuron:1")
    neuron.default_generators[1].manual_seed(11)
    assert _draw("neuron:1") == expected
    assert [generator.device for generator in neuron.default_generators] == [
        torch.device("neuron", 0),
        torch.device("neuron", 1),
    ]


def test_a_generator_of_its_own_leaves_the_default_one_alone(neuron: ModuleType) -> None:
    generator = torch.Generator(device="neuron")
    generator.manual_seed(4)
    before = neuron.get_rng_state()
    first = _draw(generator=generator)
    assert torch.equal(neuron.get_rng_state(), before)
    assert _draw(generator=generator.manual_seed(4)) == first


def test_a_generator_round_trips_through_its_state(neuron: ModuleType) -> None:
    generator = torch.Generator(device="neuron:1").manual_seed(9)
    _draw("neuron:1", generator)
    other = torch.Generator(device="neuron:1")
    other.set_state(generator.get_state())
    assert _draw("neuron:1", other) == _draw("neuron:1", generator)


def test_a_cloned_state_is_independent(neuron: ModuleType) -> None:
    generator = torch.Generator(device="neuron").manual_seed(9)
    clone = generator.clone_state()
    first = _draw(generator=generator)
    assert _draw(generator=clone) == first
    assert _draw(generator=clone) != first


def test_fork_rng_restores_the_devices_it_is_given(neuron: ModuleType) -> None:
    torch.manual_seed(5)
    before = neuron.get_rng_state_all()
    with torch.random.fork_rng(devices=[0, 1], device_type="neuron"):
        torch.manual_seed(6)
        _draw("neuron:1")
    assert all(torch.equal(a, b) for a, b in zip(neuron.get_rng_state_all(), before, strict=True))


def test_checkpointing_draws_the_same_dropout_again(neuron: ModuleType) -> None:
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    x = torch.ones(1000, device="neuron", requires_grad=True)
    y = checkpoint(lambda value: torch.nn.functional.dropout(value, 0.5), x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal((y > 0).cpu(), (x.grad > 0).cpu())
    assert 300 < int((y > 0).sum()) < 700


def test_nothing_is_seeded_in_a_bad_fork() -> None:
    from python_process import output_of

    said = output_of("""
        import os, neuron_ref
        neuron_ref.activate()
        import torch
        torch.ones(1, device="neuron")
        pid = os.fork()
        if pid == 0:
            torch.manual_seed(1)
            print("seeded", torch.rand(1).shape, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
    """)
    assert said == "seeded torch.Size([1])\n"
