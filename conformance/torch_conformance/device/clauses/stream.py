"""Streams and events: what must happen before what, shown with real delays and never with a mere synchronisation.

Work on one stream is ordered; work on two is not, unless an event, a wait or a synchronisation orders it. A device that
runs everything at once keeps every promise here trivially; one that only says so is found out by the delays.
"""

from __future__ import annotations

import time

import torch

from .. import expect
from ..clause import clause
from ..target import Device
from ..work import DELAY_S, delay, runs_at_once
from .registration import in_thread

NEEDS = ("streams",)
SOURCE = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams"
STREAM = "https://docs.pytorch.org/docs/stable/generated/torch.Stream.html"
EVENT = "https://docs.pytorch.org/docs/stable/generated/torch.Event.html"
COST = 0.3


def streams(device: Device, count: int) -> list[torch.Stream]:
    """New streams of the first device, with the default stream drained."""
    device.synchronize()
    return [torch.Stream(device=device.first) for _ in range(count)]


def event(device: Device, timed: bool = False) -> torch.Event:
    """A new event of the first device."""
    return torch.Event(device=device.first, enable_timing=timed)


@clause(
    "stream/context/switches-and-restores",
    words="Inside `with stream` that stream is current; leaving it, by an exception too, brings the old one back.",
    source=STREAM,
    fault="current_stream_is_always_default",
    needs=NEEDS,
    profile="smoke",
)
def context_switches(device: Device) -> None:
    before = torch.accelerator.current_stream()
    one, two = streams(device, 2)
    with one:
        expect.equal(torch.accelerator.current_stream(), one, "current stream inside `with one`")
        try:
            with two:
                expect.equal(torch.accelerator.current_stream(), two, "current stream inside `with two`")
                raise KeyError("leaves the block")
        except KeyError:
            pass
        expect.equal(torch.accelerator.current_stream(), one, "current stream after `with two`")
    after = torch.accelerator.current_stream()
    torch.accelerator.set_stream(before)
    expect.equal(after, before, "current stream after `with one`")


@clause(
    "stream/module-context/switches-and-restores",
    words="torch.NAME.stream makes a stream current inside its block and brings the old one back after it.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.cuda.stream.html",
    fault="stream_context_does_not_restore",
    needs=NEEDS,
)
def module_context(device: Device) -> None:
    module = device.module
    before = torch.accelerator.current_stream()
    stream = module.Stream()
    with module.stream(stream):
        expect.equal(torch.accelerator.current_stream().stream_id, stream.stream_id, "current stream inside the block")
    after = torch.accelerator.current_stream()
    torch.accelerator.set_stream(before)
    expect.equal(after, before, "current stream after the block")


@clause(
    "stream/set/changes-the-current",
    words="torch.accelerator.set_stream changes the current stream, and its device with it.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.accelerator.set_stream.html",
    fault="new_stream_is_default",
    needs=NEEDS,
)
def set_changes(device: Device) -> None:
    before = torch.accelerator.current_stream()
    (stream,) = streams(device, 1)
    expect.true(stream != before, "the default stream", "another stream", "torch.Stream(device)")
    expect.equal(stream.device, device.first, "stream.device")
    torch.accelerator.set_stream(stream)
    try:
        expect.equal(torch.accelerator.current_stream(), stream, "current stream after set_stream")
    finally:
        torch.accelerator.set_stream(before)


@clause(
    "stream/new/are-different",
    words="Two new streams are different streams, and neither is the default one.",
    source=STREAM,
    fault="new_stream_is_default",
    needs=NEEDS,
)
def new_are_different(device: Device) -> None:
    made = [torch.accelerator.current_stream(), *streams(device, 2)]
    expect.equal(
        len({stream.stream_id for stream in made}), 3, "different stream ids of the default and two new streams"
    )


@clause(
    "stream/current/is-per-thread",
    words="The current stream belongs to a thread: a new thread starts on the default stream.",
    source=SOURCE,
    fault="current_stream_is_per_process",
    needs=NEEDS,
)
def current_per_thread(device: Device) -> None:
    default = torch.accelerator.current_stream()
    (stream,) = streams(device, 1)
    with stream:
        other = in_thread(torch.accelerator.current_stream)
    expect.equal(other, default, "current stream of a new thread while this one is on another stream")


@clause(
    "stream/current/is-per-device",
    words="Each device has a current stream of its own.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.accelerator.current_stream.html",
    fault="current_stream_is_always_default",
    needs=NEEDS,
    devices=2,
)
def current_per_device(device: Device) -> None:
    before = [torch.accelerator.current_stream(index) for index in (0, 1)]
    stream = torch.Stream(device=device.second)
    torch.accelerator.set_stream(stream)
    try:
        expect.equal(torch.accelerator.current_device_index(), 1, "current device after set_stream of the second")
        expect.equal(torch.accelerator.current_stream(1), stream, "current stream of the second device")
        expect.equal(torch.accelerator.current_stream(0), before[0], "current stream of the first device")
    finally:
        torch.accelerator.set_stream(before[1])
        torch.accelerator.set_stream(before[0])


@clause(
    "stream/query/false-while-pending",
    words="query is false while the stream has work left and true after synchronize.",
    source=STREAM,
    fault="stream_query_always_true",
    needs=NEEDS,
    cost=COST,
)
def query_pending(device: Device) -> None:
    (stream,) = streams(device, 1)
    with stream:
        took = delay(device, device.first)
        pending = stream.query()
    if not runs_at_once(took):
        expect.equal(pending, False, f"stream.query() right after {DELAY_S} s of work were put on it")
    stream.synchronize()
    expect.equal(stream.query(), True, "stream.query() after stream.synchronize()")


@clause(
    "stream/synchronize/waits",
    words="stream.synchronize returns after all work that was put on the stream before it.",
    source=STREAM,
    fault="stream_sync_returns_early",
    needs=NEEDS,
    cost=COST,
)
def synchronize_waits(device: Device) -> None:
    (stream,) = streams(device, 1)
    begin = time.perf_counter()
    with stream:
        delay(device, device.first)
        stream.synchronize()
    _took(begin, "work and stream.synchronize()")
    expect.equal(stream.query(), True, "stream.query() after stream.synchronize()")


@clause(
    "stream/device-synchronize/waits-for-all",
    words="torch.accelerator.synchronize waits for every stream of the device.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.accelerator.synchronize.html",
    fault="device_sync_returns_early",
    needs=NEEDS,
    cost=COST,
)
def device_synchronize(device: Device) -> None:
    one, two = streams(device, 2)
    begin = time.perf_counter()
    for stream in (one, two):
        with stream:
            delay(device, device.first)
    torch.accelerator.synchronize()
    _took(begin, "work on two streams and torch.accelerator.synchronize()")
    expect.equal((one.query(), two.query()), (True, True), "query() of both streams after the synchronisation")


@clause(
    "stream/default/is-ordered-with-the-host",
    words="Reading a device tensor on the host waits for the work that produces it.",
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
    fault="sum_reads_before_it_waits",
    needs=NEEDS,
    cost=COST,
)
def host_read_waits(device: Device) -> None:
    tensor = torch.zeros(64, device=device.first)
    device.synchronize()
    delay(device, device.first)
    tensor.fill_(3)
    expect.equal(tensor.sum().item(), 192.0, "sum().item() of a tensor that is filled behind a delay")
    delay(device, device.first)
    tensor.add_(1)
    expect.values(tensor, torch.full((64,), 4.0), "tensor.cpu() of a tensor that is added to behind a delay")


@clause(
    "stream/order/within-a-stream",
    words="Work on one stream happens in the order in which it was put there.",
    source=SOURCE,
    fault="stream_runs_out_of_order",
    needs=NEEDS,
    cost=COST,
)
def order_within(device: Device) -> None:
    (stream,) = streams(device, 1)
    tensor = torch.zeros(1000, device=device.first)
    device.synchronize()
    with stream:
        delay(device, device.first)
        for number in range(20):
            tensor.mul_(2).add_(number)
    stream.synchronize()
    wanted = 0
    for number in range(20):
        wanted = wanted * 2 + number
    expect.values(tensor, torch.full((1000,), float(wanted)), "twenty dependent operators behind a delay")


@clause(
    "stream/event/orders-two-streams",
    words="What a stream does after wait_event happens after what was put on the other stream before the record.",
    source=EVENT,
    fault="event_does_not_wait",
    needs=NEEDS,
    cost=COST,
)
def event_orders(device: Device) -> None:
    one, two = streams(device, 2)
    tensor = torch.zeros(4096, device=device.first)
    device.synchronize()
    reached, behind = event(device), event(device)
    with one:
        delay(device, device.first)
        reached.record(one)
    two.wait_event(reached)
    behind.record(two)
    # The order of these two reads matters: what is behind the event must not be done while the event is not.
    done_behind = behind.query()
    done_event = reached.query()
    expect.true(done_event or not done_behind, "done", "pending", "work behind an event that is not reached")
    two.synchronize()
    expect.equal(reached.query(), True, "the event, after synchronising the stream that waited for it")
    with one:
        delay(device, device.first)
        tensor.fill_(1)
        reached.record(one)
    two.wait_event(reached)
    with two:
        copy = tensor.clone()
    two.synchronize()
    expect.values(copy, torch.ones(4096), "a copy made behind the event of the fill")


@clause(
    "stream/wait-stream/orders-two-streams",
    words="wait_stream makes all later work of one stream wait for all earlier work of the other.",
    source=STREAM,
    fault="event_does_not_wait",
    needs=NEEDS,
    cost=COST,
)
def wait_stream_orders(device: Device) -> None:
    one, two = streams(device, 2)
    tensor = torch.zeros(4096, device=device.first)
    device.synchronize()
    with one:
        delay(device, device.first)
    two.wait_stream(one)
    done_two = two.query()
    done_one = one.query()
    expect.true(done_one or not done_two, "done", "pending", "a stream that waits for one with work left")
    two.synchronize()
    expect.equal(one.query(), True, "the stream that was waited for, after synchronising the one that waited")
    with one:
        delay(device, device.first)
        tensor.fill_(2)
    two.wait_stream(one)
    with two:
        copy = tensor + 1
    two.synchronize()
    expect.values(copy, torch.full((4096,), 3.0), "a sum made after wait_stream")


@clause(
    "stream/event/wait-on-current",
    words="Event.wait makes the stream it is given wait, and the host go on.",
    source=EVENT,
    fault="event_does_not_wait",
    needs=NEEDS,
    cost=COST,
)
def event_wait(device: Device) -> None:
    one, two = streams(device, 2)
    device.synchronize()
    reached, behind = event(device), event(device)
    with one:
        took = delay(device, device.first)
        reached.record(one)
    begin = time.perf_counter()
    reached.wait(two)
    host = time.perf_counter() - begin
    behind.record(two)
    done_behind = behind.query()
    done_event = reached.query()
    if not runs_at_once(took):
        expect.true(host < DELAY_S / 2, host, f"less than {DELAY_S / 2} s", "time the host spent in Event.wait")
    expect.true(done_event or not done_behind, "done", "pending", "work behind an event that is not reached")
    two.synchronize()
    expect.equal(reached.query(), True, "the event after synchronising the stream that waited")


@clause(
    "stream/event/query",
    words="An event that was never recorded is done; one that is behind pending work is not; after synchronize it is.",
    source=EVENT,
    fault="event_query_always_true",
    needs=NEEDS,
    cost=COST,
)
def event_query(device: Device) -> None:
    (stream,) = streams(device, 1)
    mark = event(device)
    expect.equal(mark.query(), True, "query() of an event that was never recorded")
    with stream:
        took = delay(device, device.first)
        mark.record(stream)
        pending = mark.query()
    if not runs_at_once(took):
        expect.equal(pending, False, f"query() of an event behind {DELAY_S} s of work")
    mark.synchronize()
    expect.equal(mark.query(), True, "query() after Event.synchronize()")


@clause(
    "stream/event/synchronize-waits",
    words="Event.synchronize returns after the work before the record, and need not wait for what comes later.",
    source=EVENT,
    fault="event_sync_returns_early",
    needs=NEEDS,
    cost=COST,
)
def event_synchronize(device: Device) -> None:
    (stream,) = streams(device, 1)
    mark = event(device)
    begin = time.perf_counter()
    with stream:
        delay(device, device.first)
        mark.record(stream)
    mark.synchronize()
    _took(begin, "work, record and Event.synchronize()")
    expect.equal(mark.query(), True, "query() after Event.synchronize()")


@clause(
    "stream/event/recorded-again",
    words="Recording an event again moves it: it then speaks of the later work.",
    source=EVENT,
    fault="event_query_always_true",
    needs=NEEDS,
    cost=COST,
)
def event_again(device: Device) -> None:
    (stream,) = streams(device, 1)
    mark = event(device)
    mark.record(stream)
    mark.synchronize()
    begin = time.perf_counter()
    with stream:
        took = delay(device, device.first)
        mark.record(stream)
        pending = mark.query()
    if not runs_at_once(took):
        expect.equal(pending, False, "query() of an event that was done and is recorded again behind work")
    mark.synchronize()
    _took(begin, "work, second record and Event.synchronize()")


@clause(
    "stream/event/elapsed-time",
    words="elapsed_time of two events around known work is about that work's time in milliseconds.",
    source=EVENT,
    fault="elapsed_time_zero",
    needs=("streams", "event_timing"),
    cost=COST,
)
def elapsed_time(device: Device) -> None:
    (stream,) = streams(device, 1)
    first, last = event(device, timed=True), event(device, timed=True)
    begin = time.perf_counter()
    with stream:
        first.record(stream)
        delay(device, device.first)
        last.record(stream)
    last.synchronize()
    wall_ms = (time.perf_counter() - begin) * 1e3
    got = first.elapsed_time(last)
    least = 0.5 * DELAY_S * 1e3
    expect.true(least <= got <= wall_ms + 1, got, f"{least:.1f} to {wall_ms:.1f} ms", "elapsed_time around the work")


@clause(
    "stream/event/elapsed-time-needs-timing",
    words="elapsed_time of events that were made without timing is an error.",
    source=EVENT,
    fault="untimed_events_have_time",
    needs=("streams", "event_timing"),
)
def elapsed_needs_timing(device: Device) -> None:
    (stream,) = streams(device, 1)
    first, last = event(device), event(device)
    first.record(stream)
    last.record(stream)
    last.synchronize()
    expect.raises((RuntimeError, ValueError), lambda: first.elapsed_time(last), "elapsed_time of events without timing")


@clause(
    "stream/record-stream/defers-reuse",
    words="Memory that another stream still uses is not given to a new tensor once record_stream has said so.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.record_stream.html",
    fault="record_stream_ignored",
    needs=NEEDS,
    cost=COST,
)
def record_stream(device: Device) -> None:
    (stream,) = streams(device, 1)
    size = 1 << 20
    tensor = torch.full((size,), 1.0, device=device.first)
    address = tensor.data_ptr()
    device.synchronize()
    with stream:
        delay(device, device.first)
    tensor.record_stream(stream)
    del tensor
    fresh = [torch.empty(size, device=device.first) for _ in range(3)]
    reused = any(item.data_ptr() == address for item in fresh)
    # Asked after the allocations: had the stream finished by then, reuse would be right.
    if not stream.query():
        expect.equal(reused, False, "whether memory that another stream still uses was given to a new tensor")
    stream.synchronize()
    read = torch.full((size,), 1.0, device=device.first)
    device.synchronize()
    with stream:
        delay(device, device.first)
        copy = read.clone()
    read.record_stream(stream)
    del read
    fresh = [torch.full((size,), 9.0, device=device.first) for _ in range(3)]
    stream.synchronize()
    expect.values(copy[:16], torch.ones(16), "a copy made on the other stream")


@clause(
    "stream/priority/is-accepted",
    words="A stream can be made with a priority of 0 or below, and works.",
    source=STREAM,
    fault="new_stream_is_default",
    needs=NEEDS,
)
def priority(device: Device) -> None:
    low, high = torch.Stream(device=device.first, priority=0), torch.Stream(device=device.first, priority=-1)
    expect.true(low != high, "one stream", "two", "streams of different priorities")
    with high:
        out = torch.ones(8, device=device.first) * 3
    high.synchronize()
    expect.values(out, torch.full((8,), 3.0), "work on a stream of high priority")


@clause(
    "stream/devices/order-each-other",
    words="An event of one device orders a stream of another.",
    source=EVENT,
    fault="event_does_not_wait",
    needs=NEEDS,
    devices=2,
    cost=COST,
)
def across_devices(device: Device) -> None:
    one, two = torch.Stream(device=device.first), torch.Stream(device=device.second)
    reached, behind = event(device), torch.Event(device=device.second)
    with one:
        delay(device, device.first)
        reached.record(one)
    two.wait_event(reached)
    behind.record(two)
    done_behind = behind.query()
    done_event = reached.query()
    expect.true(done_event or not done_behind, "done", "pending", "work of the second device behind the first's event")
    two.synchronize()
    expect.equal(reached.query(), True, "the event after synchronising the second device's stream")


def _took(begin: float, what: str) -> None:
    """Fail when less time went by than most of the work takes."""
    seconds = time.perf_counter() - begin
    expect.true(seconds >= 0.5 * DELAY_S, round(seconds, 4), f"at least {0.5 * DELAY_S} s", f"time for {what}")
