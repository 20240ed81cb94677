"""torch.neuron: the Python side of streams and events. Ordering itself is tested in test_streams.py."""

import time
from types import ModuleType

import pytest
import torch


def test_a_stream_is_one_of_torch_and_belongs_to_the_device_asked_for(neuron: ModuleType) -> None:
    stream = neuron.Stream(device=1)
    assert isinstance(stream, torch.Stream)
    assert stream.device == torch.device("neuron", 1)
    assert neuron.Stream(device="neuron:0").device_index == 0
    with neuron.device(1):
        assert neuron.Stream().device_index == 1


def test_a_stream_on_no_device_is_refused(neuron: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="invalid device index 4"):
        neuron.Stream(device=4)


def test_the_default_stream_is_current_until_another_is_set(neuron: ModuleType) -> None:
    assert neuron.current_stream() == neuron.default_stream()
    stream = neuron.Stream()
    assert stream != neuron.default_stream()
    neuron.set_stream(stream)
    assert neuron.current_stream() == stream == torch.accelerator.current_stream()
    assert neuron.default_stream() != stream
    neuron.set_stream(None)
    assert neuron.current_stream() == stream


def test_current_and_default_streams_are_of_the_class_of_the_module(neuron: ModuleType) -> None:
    assert type(neuron.current_stream()) is type(neuron.default_stream(1)) is neuron.Stream
    assert neuron.default_stream(1).device_index == 1


def test_equal_streams_have_equal_hashes(neuron: ModuleType) -> None:
    assert len({neuron.current_stream(), neuron.default_stream(), neuron.default_stream(1)}) == 2


def test_setting_a_stream_makes_its_device_current(neuron: ModuleType) -> None:
    neuron.set_stream(neuron.Stream(device=1))
    assert neuron.current_device() == 1


def test_the_stream_context_switches_and_restores_stream_and_device(neuron: ModuleType) -> None:
    stream = neuron.Stream(device=1)
    with neuron.stream(stream):
        assert neuron.current_stream() == stream
        assert neuron.current_device() == 1
    assert neuron.current_device() == 0
    assert neuron.current_stream(1) == neuron.default_stream(1)


def test_the_stream_context_of_nothing_changes_nothing(neuron: ModuleType) -> None:
    with neuron.stream(None):
        assert neuron.current_stream() == neuron.default_stream()


def test_stream_contexts_nest_and_restore_when_a_block_raises(neuron: ModuleType) -> None:
    outer, inner = neuron.Stream(), neuron.Stream()
    with neuron.stream(outer):
        with pytest.raises(KeyError), neuron.stream(inner):
            raise KeyError
        assert neuron.current_stream() == outer
    assert neuron.current_stream() == neuron.default_stream()


def test_sleeping_returns_at_once_and_keeps_its_stream_busy(neuron: ModuleType) -> None:
    stream = neuron.Stream()
    started = time.perf_counter()
    with neuron.stream(stream):
        neuron._sleep(0.2)
    assert not stream.query()
    stream.synchronize()
    assert stream.query()
    assert time.perf_counter() - started >= 0.2


def test_synchronizing_a_device_waits_for_all_its_streams(neuron: ModuleType) -> None:
    stream = neuron.Stream(device=1)
    neuron._sleep(0.1, stream)
    neuron.synchronize(0)
    assert not stream.query()
    neuron.synchronize(1)
    assert stream.query()


def test_an_event_is_reached_when_the_work_before_it_is_done(neuron: ModuleType) -> None:
    stream, event = neuron.Stream(), neuron.Event()
    assert isinstance(event, torch.Event)
    neuron._sleep(0.1, stream)
    event.record(stream)
    assert not event.query()
    event.synchronize()
    assert event.query()


def test_two_events_measure_the_time_between_them_in_milliseconds(neuron: ModuleType) -> None:
    start, end = neuron.Event(enable_timing=True), neuron.Event(enable_timing=True)
    start.record()
    neuron._sleep(0.05)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 50.0


def test_events_are_instances_wherever_they_come_from(neuron: ModuleType) -> None:
    assert isinstance(neuron.Event(), neuron.Event)
    assert isinstance(neuron.current_stream().record_event(), neuron.Event)
    assert not isinstance(neuron.current_stream(), neuron.Event)


def test_a_stream_that_waits_for_an_event_is_busy_until_it_is_reached(neuron: ModuleType) -> None:
    first, second = neuron.Stream(), neuron.Stream()
    neuron._sleep(0.1, first)
    event = first.record_event()
    second.wait_event(event)
    assert not second.query()
    second.synchronize()
    assert event.query()


def test_a_stream_says_what_it_is(neuron: ModuleType) -> None:
    assert repr(neuron.default_stream(1)) == "torch.neuron.Stream(device=neuron:1, stream_id=0)"


@pytest.mark.parametrize("priority", [0, -1, -1000, 1000])
def test_priorities_beyond_the_range_mean_the_nearest(neuron: ModuleType, priority: int) -> None:
    assert neuron.Stream(priority=priority).query()
