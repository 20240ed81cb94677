"""torch.neuron: memory statistics. The allocator itself is tested in test_memory_isolation.py and beside it."""

from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

MIB = 1 << 20


@pytest.fixture(autouse=True)
def empty(neuron: ModuleType) -> Iterator[None]:
    import gc

    gc.collect()
    neuron.synchronize()
    neuron.empty_cache()
    neuron.reset_peak_memory_stats()
    yield
    neuron.empty_cache()


def test_allocated_memory_follows_tensors(neuron: ModuleType) -> None:
    before = neuron.memory_allocated()
    x = torch.empty(MIB, dtype=torch.uint8, device="neuron")
    assert neuron.memory_allocated() - before == MIB
    del x
    assert neuron.memory_allocated() == before


def test_the_peak_stays_when_memory_is_freed_until_it_is_reset(neuron: ModuleType) -> None:
    before = neuron.memory_allocated()
    x = torch.empty(8 * MIB, dtype=torch.uint8, device="neuron")
    del x
    assert neuron.max_memory_allocated() == before + 8 * MIB
    neuron.reset_peak_memory_stats()
    assert neuron.max_memory_allocated() == before


@pytest.mark.parametrize("name", ["reset_max_memory_allocated", "reset_max_memory_reserved"])
def test_older_names_reset_the_peak_as_well(neuron: ModuleType, name: str) -> None:
    x = torch.empty(8 * MIB, dtype=torch.uint8, device="neuron")
    del x
    getattr(neuron, name)()
    assert neuron.max_memory_allocated() == neuron.memory_allocated()


def test_reserved_memory_is_given_back_by_emptying_the_cache(neuron: ModuleType) -> None:
    before = neuron.memory_reserved()
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="neuron")
    held = neuron.memory_reserved()
    assert held >= before + 64 * MIB
    del x
    assert neuron.memory_reserved() == held
    neuron.empty_cache()
    assert neuron.memory_reserved() == before
    assert neuron.max_memory_reserved() >= held


def test_statistics_are_those_of_the_accelerator_with_the_same_keys(neuron: ModuleType) -> None:
    x = torch.empty(MIB, dtype=torch.uint8, device="neuron:1")
    assert neuron.memory_stats(1) == torch.accelerator.memory_stats(1)
    assert neuron.memory_allocated(1) == torch.accelerator.memory_allocated(1) >= x.nbytes
    assert list(neuron.memory_stats(1)) == list(torch.accelerator.memory_stats(1))


def test_documented_keys_are_there(neuron: ModuleType) -> None:
    stats = neuron.memory_stats()
    for name in ("allocated_bytes", "reserved_bytes", "active_bytes", "active", "segment", "inactive_split"):
        for pool in ("all", "large_pool", "small_pool"):
            for measure in ("current", "peak", "allocated", "freed"):
                assert isinstance(stats[f"{name}.{pool}.{measure}"], int)
    assert stats["num_ooms"] == 0


def test_nested_statistics_hold_the_same_numbers(neuron: ModuleType) -> None:
    x = torch.empty(MIB, dtype=torch.uint8, device="neuron")
    nested = neuron.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == neuron.memory_allocated() >= x.nbytes


def test_accumulated_statistics_start_again_when_reset(neuron: ModuleType) -> None:
    torch.empty(MIB, dtype=torch.uint8, device="neuron")
    assert neuron.memory_stats()["allocated_bytes.all.allocated"] >= MIB
    neuron.reset_accumulated_memory_stats()
    assert neuron.memory_stats()["allocated_bytes.all.allocated"] == 0


def test_each_device_has_statistics_of_its_own(neuron: ModuleType) -> None:
    before = neuron.memory_allocated(0)
    x = torch.empty(4 * MIB, dtype=torch.uint8, device="neuron:1")
    assert neuron.memory_allocated(0) == before
    assert neuron.memory_allocated("neuron:1") >= x.nbytes
    with neuron.device(1):
        assert neuron.memory_allocated() == neuron.memory_allocated(1)


def test_free_memory_goes_down_by_what_is_reserved(neuron: ModuleType) -> None:
    free, total = neuron.mem_get_info()
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="neuron")
    less, same = neuron.mem_get_info()
    assert same == total
    assert free - less >= x.nbytes
    assert (less, same) == torch.accelerator.get_memory_info()


@pytest.mark.parametrize("name", ["memory_stats", "memory_allocated", "reset_peak_memory_stats", "mem_get_info"])
def test_an_index_of_no_device_is_refused(neuron: ModuleType, name: str) -> None:
    with pytest.raises(RuntimeError, match="invalid device index 9"):
        getattr(neuron, name)(9)


def test_the_summary_shows_current_and_peak_of_each_pool(neuron: ModuleType) -> None:
    x = torch.empty(32 * MIB, dtype=torch.uint8, device="neuron:1")
    lines = neuron.memory_summary(1).splitlines()
    assert lines[0].startswith("Memory of neuron:1")
    allocated = next(line for line in lines if line.startswith("Allocated memory"))
    assert f"{neuron.memory_allocated(1) // MIB} MiB" in allocated
    assert any(line.startswith("  from large pool") for line in lines)
    assert not any("pool" in line for line in neuron.memory_summary(1, abbreviated=True).splitlines())
    assert x.nbytes == 32 * MIB


def test_pinned_memory_is_counted_and_given_back(neuron: ModuleType) -> None:
    before = neuron.host_memory_stats()
    x = torch.empty(MIB, dtype=torch.uint8).pin_memory()
    assert x.is_pinned()
    assert neuron.host_memory_stats() != before
    del x
    neuron.empty_host_cache()
