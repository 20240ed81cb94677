"""The faults of the Python part: each breaks what it says, and can be taken back."""

import copy
import io
import warnings
from collections.abc import Callable

import pytest
import torch
from neuron_ref import _C, faults, python_faults

Check = Callable[[], bool]

CHECKS: dict[str, Check] = {}
"""By fault: what holds as long as the fault is off."""


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def _neuron():
    return torch.get_device_module("neuron")


@check
def device_context_does_not_restore() -> bool:
    with _neuron().device(1):
        pass
    return torch.accelerator.current_device_index() == 0


@check
def out_of_range_index_wraps() -> bool:
    return _refused(lambda: _neuron().set_device(3), RuntimeError)


@check
def cpu_accepted_as_device() -> bool:
    return _refused(lambda: _neuron().synchronize("cpu"), ValueError)


def _refused(call: Callable[[], object], kind: type[Exception]) -> bool:
    try:
        call()
    except kind:
        return True
    return False


@check
def device_count_is_one() -> bool:
    return _neuron().device_count() == 2


@check
def manual_seed_all_seeds_first_device_only() -> bool:
    _neuron().default_generators[1].manual_seed(99)
    torch.manual_seed(12)
    return _neuron().default_generators[1].initial_seed() == 12


@check
def set_rng_state_ignored() -> bool:
    state = _neuron().get_rng_state()
    first = torch.rand(4, device="neuron").tolist()
    _neuron().set_rng_state(state)
    return torch.rand(4, device="neuron").tolist() == first


@check
def get_rng_state_of_first_device() -> bool:
    _neuron().manual_seed_all(1)
    _neuron().default_generators[1].manual_seed(2)
    return not torch.equal(_neuron().get_rng_state(1), _neuron().get_rng_state(0))


@check
def torch_manual_seed_misses_device() -> bool:
    _neuron().default_generators[0].manual_seed(99)
    torch.manual_seed(31)
    return _neuron().initial_seed() == 31


@check
def stream_context_does_not_switch() -> bool:
    stream = _neuron().Stream()
    with _neuron().stream(stream):
        return _neuron().current_stream() == stream


@check
def stream_context_does_not_restore() -> bool:
    with _neuron().stream(_neuron().Stream()):
        pass
    return _neuron().current_stream() == _neuron().default_stream()


@check
def set_stream_ignores_device() -> bool:
    _neuron().set_stream(_neuron().Stream(device=1))
    return _neuron().current_device() == 1


@check
def default_stream_is_current_stream() -> bool:
    stream = _neuron().Stream()
    with _neuron().stream(stream):
        return _neuron().default_stream() != stream


@check
def max_memory_is_current() -> bool:
    x = torch.empty(1 << 20, device="neuron")
    size = x.nbytes
    del x
    return _neuron().max_memory_allocated() >= _neuron().memory_allocated() + size


@check
def memory_stats_of_first_device() -> bool:
    x = torch.empty(1 << 20, device="neuron:1")
    before = torch.accelerator.memory_allocated(1)
    del x
    return torch.accelerator.memory_allocated(1) < before


@check
def mem_get_info_swapped() -> bool:
    x = torch.empty(1 << 20, device="neuron")
    free, total = torch.accelerator.get_memory_info()
    return free < total and x.nbytes > 0


@check
def amp_default_dtype_is_bfloat16() -> bool:
    x = torch.rand(2, 2, device="neuron")
    with torch.autocast("neuron"):
        return (x @ x).dtype == torch.float16


@check
def amp_supports_float16_only() -> bool:
    x = torch.rand(2, 2, device="neuron")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autocast("neuron", dtype=torch.bfloat16):
            return (x @ x).dtype == torch.bfloat16


@check
def autocast_leaks() -> bool:
    with torch.autocast("neuron"):
        pass
    return not torch.is_autocast_enabled("neuron")


@check
def grad_scaler_misses_infinity() -> bool:
    weight = torch.ones(2, device="neuron", requires_grad=True)
    optimizer, scaler = torch.optim.SGD([weight], lr=1.0), torch.amp.GradScaler("neuron", init_scale=2.0)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    return weight.tolist() == [1.0, 1.0]


def _round_trip(x: torch.Tensor, **options: object) -> torch.Tensor:
    buffer = io.BytesIO()
    torch.save(x, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


@check
def save_loses_device_index() -> bool:
    return _round_trip(torch.ones(1, device="neuron:1")).device.index == 1


@check
def load_ignores_device_index() -> bool:
    return _round_trip(torch.ones(1), map_location="neuron:1").device.index == 1


@check
def module_to_replaces_parameters() -> bool:
    layer = torch.nn.Linear(1, 1)
    weight = layer.weight
    return layer.to("neuron").weight is weight


@check
def tensor_method_ignores_index() -> bool:
    return torch.ones(1).neuron(1).device.index == 1


@check
def gelu_ignores_approximation() -> bool:
    x = torch.linspace(-3, 3, 64)
    found = torch.nn.functional.gelu(x.to("neuron"), approximate="tanh").cpu()
    return torch.allclose(found, torch.nn.functional.gelu(x, approximate="tanh"), atol=1e-6)


@check
def cumsum_skips_last() -> bool:
    return torch.cumsum(torch.ones(3, device="neuron"), 0).tolist() == [1.0, 2.0, 3.0]


@check
def sort_refused() -> bool:
    return not _refused(lambda: torch.sort(torch.ones(3, device="neuron")), NotImplementedError)


def test_every_python_fault_is_checked() -> None:
    assert set(CHECKS) == set(python_faults.FAULTS)


@pytest.mark.parametrize("name", sorted(python_faults.FAULTS))
def test_a_fault_breaks_what_it_says_and_can_be_taken_back(name: str) -> None:
    assert CHECKS[name](), "does not hold without the fault"
    _start_again()
    faults.switch([name])
    assert not CHECKS[name](), "holds in spite of the fault"
    faults.clear()
    _start_again()
    assert CHECKS[name](), "does not hold after the fault"


def _start_again() -> None:
    neuron = _neuron()
    neuron.set_device(0)
    for index in range(2):
        torch.accelerator.set_stream(neuron.default_stream(index))
    torch.accelerator.set_device_index(0)
    torch.set_autocast_enabled("neuron", False)
    neuron.reset_peak_memory_stats()


@pytest.mark.parametrize("name", sorted(python_faults.FAULTS))
def test_a_fault_says_in_a_sentence_what_it_breaks(name: str) -> None:
    summary = python_faults.FAULTS[name].summary
    assert summary.endswith(".") and "\n" not in summary


def test_names_of_both_parts_are_distinct_and_listed() -> None:
    assert not set(_C.fault_names()) & set(python_faults.FAULTS)
    assert faults.switch([]) == faults.names() == sorted({*_C.fault_names(), *python_faults.FAULTS})


def test_an_unknown_name_is_refused_with_the_nearest_and_nothing_is_switched() -> None:
    with pytest.raises(ValueError, match=r"unknown fault 'autocast_leak'; the nearest of \d+ is 'autocast_leaks'"):
        faults.switch(["device_count_is_one", "autocast_leak"])
    assert _neuron().device_count() == 2


def test_a_fault_that_is_on_is_not_applied_twice() -> None:
    original = copy.copy(torch.serialization._package_registry)
    faults.switch(["save_loses_device_index"])
    faults.switch(["save_loses_device_index"])
    assert len(torch.serialization._package_registry) == len(original) + 1
    faults.clear()
    assert torch.serialization._package_registry == original


def test_a_fault_of_the_compiled_part_is_switched_and_cleared() -> None:
    def seeds_matter() -> bool:
        drawn = []
        for seed in (1, 2):
            _neuron().manual_seed(seed)
            drawn.append(torch.rand(4, device="neuron").tolist())
        return drawn[0] != drawn[1]

    assert seeds_matter()
    faults.switch(["rng_seed_ignored"])
    assert not seeds_matter()
    faults.clear()
    assert seeds_matter()
