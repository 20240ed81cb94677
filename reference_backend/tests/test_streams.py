"""Streams are queues with a worker each: what is ordered, what waits, and what runs beside the host."""

import gc
import time
from collections.abc import Callable

import pytest
import torch
from neuron_ref import _C, faults

DELAY_S = 0.15


def sleep_on(stream: torch.Stream, seconds: float = DELAY_S) -> None:
    _C.sleep(seconds, stream.device_index, stream.stream_id)


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def pinned(*values: float) -> torch.Tensor:
    return torch.tensor(values).pin_memory()


def test_enqueuing_returns_at_once_and_synchronize_waits() -> None:
    stream = torch.Stream("neuron")
    assert seconds_of(lambda: sleep_on(stream)) < DELAY_S / 3
    assert not stream.query()
    assert _C.enqueued_tasks(stream.device_index, stream.stream_id) == 1
    assert seconds_of(stream.synchronize) > DELAY_S / 2
    assert stream.query()
    assert _C.enqueued_tasks(stream.device_index, stream.stream_id) == 0


def test_synchronizing_the_device_waits_for_all_of_its_streams() -> None:
    first, second = torch.Stream("neuron"), torch.Stream("neuron", priority=-1)
    sleep_on(first)
    sleep_on(second)
    torch.accelerator.synchronize(0)
    assert first.query()
    assert second.query()


def test_synchronizing_one_device_does_not_wait_for_the_other() -> None:
    stream = torch.Stream("neuron:1")
    sleep_on(stream, 0.5)
    assert seconds_of(lambda: torch.accelerator.synchronize(0)) < 0.25
    assert not stream.query()
    stream.synchronize()


def test_streams_run_beside_each_other() -> None:
    streams = [torch.Stream("neuron") for _ in range(4)]
    for stream in streams:
        sleep_on(stream)
    assert seconds_of(torch.accelerator.synchronize) < 3 * DELAY_S


def test_an_operator_runs_after_what_its_stream_holds() -> None:
    stream = torch.Stream("neuron")
    source = pinned(1.0, 2.0)
    with stream:
        target = torch.zeros(2, device="neuron")
        sleep_on(stream)
        target.copy_(source, non_blocking=True)
        result = target + 1
    assert result.cpu().tolist() == [2, 3]


def test_a_non_blocking_copy_from_pinned_memory_returns_before_it_is_done() -> None:
    target = torch.zeros(2, device="neuron")
    source = pinned(1.0, 2.0)
    stream = torch.accelerator.current_stream()
    sleep_on(stream)
    assert seconds_of(lambda: target.copy_(source, non_blocking=True)) < DELAY_S / 2
    assert not stream.query()
    assert _C.alias_host(target).tolist() == [1, 2]


def test_a_non_blocking_copy_to_pinned_memory_is_done_after_the_stream() -> None:
    target = pinned(0.0, 0.0)
    source = torch.ones(2, device="neuron")
    stream = torch.accelerator.current_stream()
    sleep_on(stream)
    target.copy_(source, non_blocking=True)
    assert target.tolist() == [0, 0]
    stream.synchronize()
    assert target.tolist() == [1, 1]


def test_a_non_blocking_copy_from_pageable_memory_has_read_it_when_it_returns() -> None:
    target = torch.zeros(2, device="neuron")
    source = torch.ones(2)
    sleep_on(torch.accelerator.current_stream())
    target.copy_(source, non_blocking=True)
    source.fill_(5)
    assert target.cpu().tolist() == [1, 1]


def test_a_deferred_copy_converts_dtype_and_follows_strides() -> None:
    source = torch.arange(6).reshape(2, 3).pin_memory().t()
    target = torch.zeros(3, 2, device="neuron")
    target.copy_(source, non_blocking=True)
    assert torch.equal(target.cpu(), source.float())


def test_pinned_memory_is_not_used_again_while_a_copy_reads_it() -> None:
    target = torch.zeros(1024, device="neuron")
    stream = torch.accelerator.current_stream()
    source = torch.ones(1024).pin_memory()
    sleep_on(stream)
    target.copy_(source, non_blocking=True)
    del source
    gc.collect()
    overwriting = torch.full((1024,), 9.0).pin_memory()
    assert target.cpu().eq(1).all()
    assert overwriting.eq(9).all()


def test_interior_pointers_of_pinned_memory_are_pinned() -> None:
    tensor = torch.zeros(1000).pin_memory()
    assert tensor.is_pinned()
    assert tensor[500:].is_pinned()
    assert not torch.zeros(1000).is_pinned()


def test_an_event_orders_a_stream_after_another() -> None:
    first, second = torch.Stream("neuron"), torch.Stream("neuron")
    target = torch.zeros(1, device="neuron")
    source = pinned(3.0)
    event = torch.Event("neuron")
    sleep_on(first)
    with first:
        target.copy_(source, non_blocking=True)
    event.record(first)
    assert not event.query()
    second.wait_event(event)
    with second:
        assert target.item() == 3
    assert event.query()


def test_without_an_event_streams_are_not_ordered() -> None:
    first, second = torch.Stream("neuron"), torch.Stream("neuron")
    target = torch.zeros(1, device="neuron")
    source = pinned(3.0)
    sleep_on(first)
    with first:
        target.copy_(source, non_blocking=True)
    with second:
        assert target.item() == 0
    first.synchronize()
    assert target.item() == 3


def test_an_event_orders_streams_of_different_devices() -> None:
    first, second = torch.Stream("neuron:0"), torch.Stream("neuron:1")
    event = torch.Event("neuron:0")
    sleep_on(first)
    event.record(first)
    second.wait_event(event)
    second.synchronize()
    assert event.query()


def test_a_wait_is_for_the_mark_of_its_time_not_for_a_later_one() -> None:
    first, second = torch.Stream("neuron"), torch.Stream("neuron")
    event = torch.Event("neuron")
    event.record(first)
    second.wait_event(event)
    sleep_on(first, 0.5)
    event.record(first)
    assert seconds_of(second.synchronize) < 0.25
    event.synchronize()


def test_an_event_that_was_never_recorded_is_done() -> None:
    event = torch.Event("neuron")
    assert event.query()
    event.synchronize()


def test_elapsed_time_measures_what_lies_between_two_events() -> None:
    stream = torch.Stream("neuron")
    start, end = (torch.Event("neuron", enable_timing=True) for _ in range(2))
    start.record(stream)
    sleep_on(stream)
    end.record(stream)
    stream.synchronize()
    assert DELAY_S * 1e3 * 0.9 < start.elapsed_time(end) < DELAY_S * 1e3 + 300


def test_elapsed_time_of_events_without_timing_is_an_error() -> None:
    start, end = torch.Event("neuron"), torch.Event("neuron")
    start.record()
    end.record()
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(end)


def test_an_event_may_be_dropped_while_a_stream_waits_for_it() -> None:
    first, second = torch.Stream("neuron"), torch.Stream("neuron")
    event = torch.Event("neuron")
    sleep_on(first, 0.5)
    event.record(first)
    second.wait_event(event)
    del event
    gc.collect()
    second.synchronize()
    # The worker of the first stream marks the event a moment before it is idle; a sleep left over would take longer.
    end = time.monotonic() + 0.2
    while not first.query() and time.monotonic() < end:
        time.sleep(0.005)
    assert first.query()


def test_a_block_with_a_recorded_stream_is_not_used_again_before_the_stream_passed() -> None:
    side = torch.Stream("neuron")
    tensor = torch.ones(100, device="neuron")
    address = tensor.data_ptr()
    tensor.record_stream(side)
    sleep_on(side)
    del tensor
    assert torch.empty(100, device="neuron").data_ptr() != address
    side.synchronize()
    assert address in {torch.empty(100, device="neuron").data_ptr() for _ in range(2)}


def test_without_record_stream_the_block_is_used_again_at_once() -> None:
    tensor = torch.ones(100, device="neuron")
    address = tensor.data_ptr()
    del tensor
    assert torch.empty(100, device="neuron").data_ptr() == address


def test_memory_of_one_stream_is_not_handed_to_another() -> None:
    side = torch.Stream("neuron")
    tensor = torch.ones(100, device="neuron")
    address = tensor.data_ptr()
    del tensor
    with side:
        assert torch.empty(100, device="neuron").data_ptr() != address


def test_the_fault_that_ignores_record_stream_is_seen() -> None:
    faults.switch(["record_stream_ignored"])
    side = torch.Stream("neuron")
    tensor = torch.ones(100, device="neuron")
    address = tensor.data_ptr()
    tensor.record_stream(side)
    sleep_on(side)
    del tensor
    assert torch.empty(100, device="neuron").data_ptr() == address


def test_a_negative_delay_is_refused() -> None:
    with pytest.raises(RuntimeError, match="out of its range"):
        _C.sleep(-1.0, 0, 0)
