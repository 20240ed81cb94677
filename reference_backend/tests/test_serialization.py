"""Saving and loading, to every place that map_location can name."""

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from python_process import output_of, run_python


def _saved(obj: object) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return buffer


@pytest.fixture
def tensor() -> torch.Tensor:
    return torch.arange(6.0).reshape(2, 3).to("neuron:1")


def test_a_tensor_is_loaded_to_the_device_it_was_saved_from(tensor: torch.Tensor) -> None:
    loaded = torch.load(_saved(tensor))
    assert loaded.device == torch.device("neuron", 1)
    assert torch.equal(loaded.cpu(), tensor.cpu())


@pytest.mark.parametrize(
    ("location", "device"),
    [
        ("cpu", "cpu"),
        (torch.device("cpu"), "cpu"),
        ("neuron:0", "neuron:0"),
        ({"neuron:1": "neuron:0"}, "neuron:0"),
        ({"neuron:0": "cpu"}, "neuron:1"),
        (lambda storage, location: storage, "cpu"),
        (lambda storage, location: storage.neuron(0), "neuron:0"),
        ("meta", "meta"),
    ],
    ids=["cpu", "cpu device", "neuron:0", "dict", "dict without it", "keep", "callable", "meta"],
)
@pytest.mark.parametrize("weights_only", [True, False])
def test_map_location(tensor: torch.Tensor, location: object, device: str, weights_only: bool) -> None:
    loaded = torch.load(_saved(tensor), map_location=location, weights_only=weights_only)
    assert loaded.device == torch.device(device)
    if device != "meta":
        assert torch.equal(loaded.cpu(), tensor.cpu())


def test_map_location_as_a_device(tensor: torch.Tensor) -> None:
    assert torch.load(_saved(tensor), map_location=torch.device("neuron", 0)).device == torch.device("neuron", 0)


def test_a_location_without_an_index_means_the_current_device(neuron: ModuleType) -> None:
    saved = _saved(torch.ones(2))
    with neuron.device(1):
        assert torch.load(saved, map_location="neuron").device == torch.device("neuron", 1)


def test_a_location_of_no_device_is_refused(tensor: torch.Tensor) -> None:
    with pytest.raises(RuntimeError, match=r"device_count\(\) is 2"):
        torch.load(_saved(tensor), map_location="neuron:5")


def test_tensors_that_share_a_storage_share_it_after_loading(tensor: torch.Tensor) -> None:
    first, second = torch.load(_saved([tensor, tensor[1]]))
    first.zero_()
    assert second.tolist() == [0.0, 0.0, 0.0]


def test_strides_and_offsets_are_kept(tensor: torch.Tensor) -> None:
    view = tensor.t()[1:]
    loaded = torch.load(_saved(view))
    assert loaded.stride() == view.stride() and loaded.storage_offset() == view.storage_offset()
    assert torch.equal(loaded.cpu(), view.cpu())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64, torch.bool, torch.int64, torch.float8_e4m3fn])
def test_every_kind_of_type_round_trips(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 1], device="neuron").to(dtype)
    loaded = torch.load(_saved(x))
    assert loaded.dtype == dtype
    assert torch.equal(loaded.cpu().view(torch.uint8), x.cpu().view(torch.uint8))


def test_an_empty_tensor_round_trips() -> None:
    assert torch.load(_saved(torch.empty(0, 3, device="neuron"))).shape == (0, 3)


def test_a_module_and_its_optimizer_go_on_where_they_were() -> None:
    layer = torch.nn.Linear(3, 2).to("neuron")
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 3, device="neuron")).sum().backward()
    optimizer.step()
    other = torch.nn.Linear(3, 2).to("neuron")
    other_optimizer = torch.optim.Adam(other.parameters())
    state = torch.load(_saved({"layer": layer.state_dict(), "optimizer": optimizer.state_dict()}))
    other.load_state_dict(state["layer"])
    other_optimizer.load_state_dict(state["optimizer"])
    assert torch.equal(other.weight.cpu(), layer.weight.cpu())
    moments = other_optimizer.state[other.weight]["exp_avg"]
    assert moments.device.type == "neuron"
    assert torch.equal(moments.cpu(), optimizer.state[layer.weight]["exp_avg"].cpu())


@pytest.mark.parametrize("mmap", [True, False])
def test_a_file_can_be_mapped(tensor: torch.Tensor, tmp_path: Path, mmap: bool) -> None:
    file = tmp_path / "x.pt"
    torch.save(tensor.cpu(), file)
    loaded = torch.load(file, map_location="neuron:0", mmap=mmap)
    assert loaded.device.type == "neuron"
    assert torch.equal(loaded.cpu(), tensor.cpu())


def test_a_file_is_loaded_to_the_cpu_where_the_backend_is_absent(tensor: torch.Tensor, tmp_path: Path) -> None:
    file = tmp_path / "x.pt"
    torch.save(tensor, file)
    program = f"import torch; print(torch.load({str(file)!r}, map_location={{location}}).sum().item())"
    assert output_of(program.format(location="'cpu'")) == "15.0\n"
    assert run_python(program.format(location="None")).returncode == 1


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
def test_duplicates_are_equal_and_independent(
    tensor: torch.Tensor, duplicate: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    other = duplicate(tensor)
    assert other.device == tensor.device
    other.zero_()
    assert tensor.sum().item() == 15.0
    assert other.sum().item() == 0.0


def test_a_deep_copy_keeps_what_shares_a_storage_together(tensor: torch.Tensor) -> None:
    first, second = copy.deepcopy([tensor, tensor[0]])
    first.fill_(2.0)
    assert second.tolist() == [2.0, 2.0, 2.0]


def test_weights_are_loaded_from_many_threads_at_a_time(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    files = []
    for index in range(16):
        files.append(tmp_path / f"{index}.pt")
        torch.save(torch.full((1000,), float(index)), files[-1])
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(lambda file: torch.load(file, map_location="neuron:1"), files))
    assert [x.mean().item() for x in loaded] == [float(index) for index in range(16)]
    assert {str(x.device) for x in loaded} == {"neuron:1"}
