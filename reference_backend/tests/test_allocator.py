"""The caching allocator: reuse, statistics, the end of memory, and what it does under several threads."""

import gc
import json
import threading

import pytest
import torch
from neuron_ref import _C, faults
from python_process import output_of

MIB = 1 << 20


def stats() -> dict[str, int]:
    return torch.accelerator.memory_stats(0)


def test_sizes_are_rounded_and_requests_are_not() -> None:
    before = stats()
    tensor = torch.empty(100, dtype=torch.uint8, device="neuron")
    after = stats()
    assert after["allocated_bytes.all.current"] - before["allocated_bytes.all.current"] == 512
    assert after["requested_bytes.all.current"] - before["requested_bytes.all.current"] == 100
    assert after["allocation.all.current"] - before["allocation.all.current"] == 1
    del tensor
    assert stats()["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]


def test_small_and_large_blocks_are_counted_apart() -> None:
    before = stats()
    tensors = [torch.empty(1000, device="neuron"), torch.empty(2 * MIB, dtype=torch.uint8, device="neuron")]
    after = stats()
    for pool in ("small_pool", "large_pool"):
        assert after[f"allocation.{pool}.current"] - before[f"allocation.{pool}.current"] == 1
    del tensors


def test_the_peak_stays_until_it_is_reset() -> None:
    torch.accelerator.reset_peak_memory_stats(0)
    base = stats()["allocated_bytes.all.current"]
    torch.empty(4 * MIB, dtype=torch.uint8, device="neuron")
    assert stats()["allocated_bytes.all.peak"] >= base + 4 * MIB
    torch.accelerator.reset_peak_memory_stats(0)
    assert stats()["allocated_bytes.all.peak"] == base


def test_freed_memory_stays_reserved_until_the_cache_is_emptied() -> None:
    torch.accelerator.empty_cache()
    reserved = stats()["reserved_bytes.all.current"]
    tensor = torch.empty(64 * MIB, dtype=torch.uint8, device="neuron")
    free = _C.mem_get_info(0)[0]
    del tensor
    assert stats()["reserved_bytes.all.current"] == reserved + 64 * MIB
    torch.accelerator.empty_cache()
    assert stats()["reserved_bytes.all.current"] == reserved
    assert _C.mem_get_info(0)[0] == free + 64 * MIB


def test_neighbouring_free_blocks_are_joined() -> None:
    torch.accelerator.empty_cache()
    tensors = [torch.empty(4 * MIB, dtype=torch.uint8, device="neuron") for _ in range(4)]
    segments = stats()["segment.all.current"]
    del tensors
    tensor = torch.empty(9 * MIB, dtype=torch.uint8, device="neuron")
    assert stats()["segment.all.current"] == segments
    del tensor


def test_split_remainders_are_counted_as_inactive() -> None:
    torch.accelerator.empty_cache()
    before = stats()["inactive_split_bytes.all.current"]
    tensor = torch.empty(4 * MIB, dtype=torch.uint8, device="neuron")
    assert stats()["inactive_split_bytes.all.current"] - before == 16 * MIB
    del tensor
    torch.accelerator.empty_cache()
    assert stats()["inactive_split_bytes.all.current"] <= before


def test_new_memory_never_overlaps_memory_in_use() -> None:
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(1, 3 * MIB, (200,), generator=generator).tolist()
    kept: dict[int, torch.Tensor] = {}
    for number, size in enumerate(sizes):
        kept[number] = torch.full((size,), number % 251, dtype=torch.uint8, device="neuron")
        if number % 3 == 2:
            del kept[number - 1]
    for number, tensor in kept.items():
        assert tensor.eq(number % 251).all(), number


def test_threads_may_allocate_and_free_at_once() -> None:
    before = stats()["allocated_bytes.all.current"]
    wrong: list[int] = []

    def work(value: int) -> None:
        for size in range(1, 300):
            tensor = torch.full((size * 7,), value, dtype=torch.int32, device="neuron")
            if not bool(tensor.eq(value).all()):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert not wrong
    assert stats()["allocated_bytes.all.current"] == before


def test_the_end_of_memory_is_an_error_with_the_allocators_story() -> None:
    printed = output_of(
        """
        import json, torch, neuron_ref
        neuron_ref.activate()
        cached = torch.empty(40 << 20, dtype=torch.uint8, device="neuron")
        del cached
        whole = torch.empty(60 << 20, dtype=torch.uint8, device="neuron")  # only when the cache is given back
        message = ""
        try:
            torch.empty(10 << 20, dtype=torch.uint8, device="neuron")
        except torch.OutOfMemoryError as error:
            message = str(error)
        stats = torch.accelerator.memory_stats(0)
        del whole
        again = torch.empty(50 << 20, dtype=torch.uint8, device="neuron")
        other = torch.empty(50 << 20, dtype=torch.uint8, device="neuron:1")
        print(json.dumps([message, stats["num_alloc_retries"], stats["num_ooms"]]))
        """,
        environment={"NEURON_REF_MEMORY": "64MiB"},
    )
    message, retries, ends = json.loads(printed)
    assert "Tried to allocate 10.00 MiB" in message
    assert "neuron:0 has a total capacity of 64.00 MiB of which 4.00 MiB is free" in message
    assert "60.00 MiB is allocated by tensors" in message
    assert "NEURON_REF_MEMORY" in message
    assert (retries, ends) == (2, 1)


def test_the_number_of_devices_comes_from_the_environment() -> None:
    program = "import torch, neuron_ref; neuron_ref.activate(); print(torch.accelerator.device_count())"
    assert output_of(program, environment={"NEURON_REF_DEVICES": "5"}).strip() == "5"


@pytest.mark.parametrize("name", ["stats_not_counted", "peak_not_reset", "memory_leaks", "empty_cache_keeps_reserved"])
def test_a_memory_fault_changes_what_it_says(name: str) -> None:
    def observe() -> tuple[bool, bool, bool, bool]:
        base = stats()["allocated_bytes.all.current"]
        tensor = torch.empty(32 * MIB, dtype=torch.uint8, device="neuron")
        counted = stats()["allocated_bytes.all.current"] > base
        address = tensor.data_ptr()
        del tensor
        reused = torch.empty(32 * MIB, dtype=torch.uint8, device="neuron").data_ptr() == address
        torch.accelerator.reset_peak_memory_stats(0)
        reset = stats()["allocated_bytes.all.peak"] == stats()["allocated_bytes.all.current"]
        reserved = stats()["reserved_bytes.all.current"]
        torch.accelerator.empty_cache()
        return counted, reused, reset, stats()["reserved_bytes.all.current"] < reserved

    assert all(observe())
    faults.switch([name])
    assert not all(observe())
