"""torch.neuron: devices and indices."""

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from python_process import output_of, run_python

KNOWN_NAMES = {"trn1", "trn1n", "inf2", "trn2", "trn2n", "trn2u", "trn3", "trn3u"}


def test_the_module_and_the_accelerator_see_the_same_devices(neuron: ModuleType) -> None:
    assert neuron.device_count() == torch.accelerator.device_count() == 2
    assert neuron.is_available()


def test_the_number_of_devices_comes_from_the_environment() -> None:
    program = "import neuron_ref; neuron_ref.activate(); import torch; print(torch.neuron.device_count())"
    assert output_of(program, environment={"NEURON_REF_DEVICES": "3"}) == "3\n"


def test_a_number_of_devices_that_is_none_is_named_and_the_default_used() -> None:
    program = "import neuron_ref; neuron_ref.activate(); import torch; print(torch.neuron.device_count())"
    done = run_python(program, environment={"NEURON_REF_DEVICES": "many"})
    assert done.stdout == "2\n"
    assert "NEURON_REF_DEVICES=many" in done.stderr


# Devices are made inside a test: torch knows the name once the device is activated.
@pytest.mark.parametrize("make", [lambda: 1, lambda: "neuron:1", lambda: torch.device("neuron", 1)])
def test_set_device_takes_an_index_text_and_a_device(neuron: ModuleType, make: Callable[[], object]) -> None:
    neuron.set_device(make())
    assert neuron.current_device() == 1
    assert torch.accelerator.current_device_index() == 1
    assert torch.empty(1, device="neuron").device == torch.device("neuron", 1)


def test_set_device_with_a_negative_index_changes_nothing(neuron: ModuleType) -> None:
    neuron.set_device(1)
    neuron.set_device(-1)
    assert neuron.current_device() == 1


@pytest.mark.parametrize("call", ["set_device", "synchronize", "get_device_name", "get_device_properties"])
def test_an_index_of_no_device_is_refused_with_the_valid_ones(neuron: ModuleType, call: str) -> None:
    with pytest.raises(RuntimeError, match=r"invalid device index 2: this process sees 2 neuron devices \(0 to 1\)"):
        getattr(neuron, call)(2)


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), "meta", 1.5])
def test_a_device_of_another_type_is_refused(neuron: ModuleType, device: object) -> None:
    with pytest.raises(ValueError, match="expected a"):
        neuron.set_device(device)


def test_text_that_names_no_device_is_refused(neuron: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="nowhere"):
        neuron.set_device("nowhere:0")


def test_the_device_context_switches_and_restores(neuron: ModuleType) -> None:
    with neuron.device(1):
        assert neuron.current_device() == 1
        with neuron.device("neuron:0"):
            assert neuron.current_device() == 0
        assert neuron.current_device() == 1
    assert neuron.current_device() == 0


def test_the_device_context_restores_when_its_block_raises(neuron: ModuleType) -> None:
    with pytest.raises(KeyError), neuron.device(1):
        raise KeyError
    assert neuron.current_device() == 0


@pytest.mark.parametrize("nothing", [None, -1])
def test_a_device_context_for_no_device_changes_nothing(neuron: ModuleType, nothing: int | None) -> None:
    neuron.set_device(1)
    with neuron.device(nothing):
        assert neuron.current_device() == 1
    assert neuron.current_device() == 1


def test_a_device_context_for_an_index_of_no_device_is_refused(neuron: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="invalid device index 7"), neuron.device(7):
        pass


def test_device_of_follows_a_tensor_and_ignores_the_cpu(neuron: ModuleType) -> None:
    with neuron.device_of(torch.ones(1, device="neuron:1")):
        assert neuron.current_device() == 1
    with neuron.device_of(torch.ones(1)):
        assert neuron.current_device() == 0


def test_exchanging_returns_the_device_of_before(neuron: ModuleType) -> None:
    assert neuron.exchange_device(1) == 0
    assert neuron.exchange_device(-1) == -1
    assert neuron.current_device() == 1
    assert neuron.maybe_exchange_device(0) == 1


def test_each_thread_has_its_own_current_device(neuron: ModuleType) -> None:
    import threading

    seen: list[int] = []
    neuron.set_device(1)
    thread = threading.Thread(target=lambda: seen.append(neuron.current_device()))
    thread.start()
    thread.join()
    assert seen == [0]


def test_the_name_is_one_that_libraries_know(neuron: ModuleType) -> None:
    assert neuron.get_device_name() in KNOWN_NAMES
    assert neuron.get_device_name(1) == neuron.get_device_properties(1).name


def test_properties_are_those_of_the_device_asked_for(neuron: ModuleType) -> None:
    assert neuron.get_device_properties("neuron:1").index == 1
    neuron.set_device(1)
    assert neuron.get_device_properties().index == 1


def test_total_memory_is_what_mem_get_info_says(neuron: ModuleType) -> None:
    assert neuron.get_device_properties(0).total_memory == neuron.mem_get_info(0)[1] > 0


def test_capability_lists_types_that_the_device_computes_in(neuron: ModuleType) -> None:
    types = neuron.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool} <= set(types)
    assert neuron.get_device_capability() == torch.accelerator.get_device_capability()


def test_bfloat16_is_supported_and_computes(neuron: ModuleType) -> None:
    assert neuron.is_bf16_supported()
    ones = torch.ones(2, 2, device="neuron", dtype=torch.bfloat16)
    assert (ones @ ones).cpu().tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_a_process_is_initialized_once_it_has_used_the_device() -> None:
    said = output_of("""
        import neuron_ref
        neuron_ref.activate()
        import torch
        before = torch.neuron.is_available(), torch.neuron.device_count() > 0, torch.neuron.is_initialized()
        torch.ones(1, device="neuron")
        print(before, torch.neuron.is_initialized(), torch.neuron._initialized)
    """)
    assert said == "(True, True, False) True True\n"


def test_an_index_in_a_forked_child_of_a_process_that_used_the_device_is_refused() -> None:
    done = run_python("""
        import os, neuron_ref
        neuron_ref.activate()
        import torch
        torch.ones(1, device="neuron")
        pid = os.fork()
        if pid == 0:
            print(torch.neuron._is_in_bad_fork(), torch.neuron.is_initialized(), flush=True)
            try:
                torch.neuron.set_device(0)
            except RuntimeError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
    """)
    assert done.stdout.startswith("True False\nCannot re-initialize neuron in forked subprocess"), done.stderr


@pytest.mark.parametrize(("device", "index"), [("neuron:1", 1), (5, 5), (-1, -1)])
def test_the_index_of_an_argument(neuron: ModuleType, device: str | int, index: int) -> None:
    assert neuron._get_device_index(device) == index
    assert neuron._get_device_index(torch.device("neuron:0")) == 0


def test_an_index_is_required_unless_it_is_optional(neuron: ModuleType) -> None:
    neuron.set_device(1)
    assert neuron._get_device_index("neuron", optional=True) == 1
    assert neuron._get_device_index(None, optional=True) == 1
    assert neuron._get_device_index("cpu", optional=True, allow_cpu=True) == -1
    with pytest.raises(ValueError, match="with an index"):
        neuron._get_device_index("neuron")


def test_devices_are_peers_of_each_other_and_not_of_themselves(neuron: ModuleType) -> None:
    assert neuron.can_device_access_peer(0, 1)
    assert not neuron.can_device_access_peer(1, 1)
    with pytest.raises(RuntimeError, match="invalid device index 2"):
        neuron.can_device_access_peer(0, 2)
