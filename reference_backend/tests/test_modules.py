"""Modules, parameters and the methods that torch generates for the device."""

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import nn


@pytest.mark.parametrize("move", [lambda m: m.to("neuron"), lambda m: m.neuron(), lambda m: m.to("neuron:1")])
def test_moving_a_module_keeps_its_parameters(move) -> None:
    layer = nn.Linear(3, 2)
    weight = layer.weight
    move(layer)
    assert layer.weight is weight
    assert weight.device.type == "neuron"


def test_an_optimizer_made_before_the_move_updates_the_module() -> None:
    layer = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    layer.to("neuron")
    before = layer.weight.detach().cpu()
    layer(torch.ones(1, 3, device="neuron")).sum().backward()
    optimizer.step()
    assert torch.equal(layer.weight.detach().cpu(), before - 1.0)


def test_gradients_move_with_their_parameters() -> None:
    layer = nn.Linear(3, 2)
    layer(torch.ones(1, 3)).sum().backward()
    gradient = layer.weight.grad
    layer.to("neuron")
    assert layer.weight.grad is gradient
    assert gradient.device.type == "neuron"
    assert gradient.cpu().tolist() == [[1.0] * 3] * 2


def test_tied_parameters_stay_tied() -> None:
    module = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    module[1].weight = module[0].weight
    module.to("neuron")
    assert module[1].weight is module[0].weight
    module.to("cpu")
    assert module[1].weight is module[0].weight


def test_buffers_and_types_move() -> None:
    module = nn.BatchNorm1d(4).to("neuron", torch.float64)
    assert module.running_mean.device.type == "neuron"
    assert module.running_mean.dtype == torch.float64
    assert module.num_batches_tracked.dtype == torch.int64


def test_lazy_modules_materialise_after_the_move() -> None:
    layer = nn.LazyLinear(2).to("neuron")
    assert layer(torch.ones(1, 5, device="neuron")).shape == (1, 2)
    assert layer.weight.device.type == "neuron"
    assert layer.weight.shape == (2, 5)


def test_a_module_on_meta_is_made_real_on_the_device() -> None:
    layer = nn.Linear(3, 2, device="meta").to_empty(device="neuron:1")
    assert layer.weight.device == torch.device("neuron", 1)


def test_moving_there_and_back_changes_no_value() -> None:
    layer = nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    layer.to("neuron").to("neuron:1").to("cpu")
    assert torch.equal(layer.weight, before)


def test_a_deep_copy_of_a_module_is_independent() -> None:
    layer = nn.Linear(3, 2).to("neuron")
    other = copy.deepcopy(layer)
    other.weight.data.zero_()
    assert layer.weight.abs().sum().item() > 0
    assert other.weight.device == layer.weight.device


def test_a_default_device_makes_modules_there() -> None:
    with torch.device("neuron:1"):
        assert nn.Linear(2, 2).weight.device == torch.device("neuron", 1)


def test_tensor_methods() -> None:
    x = torch.ones(2)
    assert x.neuron().is_neuron
    assert x.neuron(1).device == torch.device("neuron", 1)
    assert not x.is_neuron
    y = x.neuron()
    assert y.neuron() is y
    assert y.is_privateuseone if hasattr(y, "is_privateuseone") else True


def test_storage_methods() -> None:
    storage = torch.ones(2).untyped_storage()
    moved = storage.neuron(1)
    assert moved.is_neuron and moved.device == torch.device("neuron", 1)
    assert moved.neuron(1) is moved
    assert moved.nbytes() == storage.nbytes()
    assert moved.cpu().tolist() == storage.tolist()


def test_packed_sequence_methods() -> None:
    packed = nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 4), torch.tensor([3, 1]))
    moved = packed.neuron()
    assert moved.is_neuron and moved.data.device.type == "neuron"
    assert moved.batch_sizes.device.type == "cpu"
    assert not packed.is_neuron


@pytest.fixture
def dataset() -> torch.utils.data.TensorDataset:
    return torch.utils.data.TensorDataset(torch.arange(32.0).reshape(16, 2), torch.arange(16))


def _batches(dataset: torch.utils.data.Dataset, **options: object) -> Iterator[list[torch.Tensor]]:
    return iter(torch.utils.data.DataLoader(dataset, batch_size=4, **options))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_pins_its_batches_and_they_are_copied_without_blocking(dataset, workers: int) -> None:
    total = torch.zeros((), device="neuron")
    for values, labels in _batches(dataset, pin_memory=True, num_workers=workers):
        assert values.is_pinned() and labels.is_pinned()
        total += values.to("neuron", non_blocking=True).sum()
    assert total.item() == sum(range(32))


def test_pinned_memory_holds_the_values_and_says_what_it_is() -> None:
    x = torch.arange(5.0)
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned()
    assert torch.equal(pinned, x)
    assert pinned[2:].is_pinned()
    assert torch.empty(3, pin_memory=True).is_pinned()


def test_data_parallel_replicas_do_not_share_memory() -> None:
    layer = nn.Linear(2, 2).to("neuron:0")
    other = copy.deepcopy(layer).to("neuron:1")
    other.weight.data.fill_(3.0)
    assert not torch.equal(layer.weight.cpu(), other.weight.cpu())
