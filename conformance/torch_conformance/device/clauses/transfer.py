"""Transfer: copies between host and device, and between devices, with every layout and dtype."""

from __future__ import annotations

import time

import torch

from .. import expect
from ..clause import clause
from ..target import Device
from ..work import DELAY_S, delay, runs_at_once

DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.complex128,
)  # fmt: skip
"""Dtypes that every layout of memory copies; a backend that claims fewer says so in its spec file."""


def dtypes(device: Device) -> list[torch.dtype]:
    """The dtypes of `DTYPES` that the backend claims."""
    claimed = device.spec.dtypes
    return [dtype for dtype in DTYPES if not claimed or str(dtype).removeprefix("torch.") in claimed]


def ramp(count: int, dtype: torch.dtype) -> torch.Tensor:
    """Values of a dtype on the CPU, all different where it has enough of them."""
    values = torch.arange(count) - count // 2
    if dtype is torch.bool:
        return values % 3 == 0
    return (values % 251).to(dtype) if dtype is torch.uint8 else values.to(dtype)


@clause(
    "transfer/host-to-device/round-trip",
    words="A tensor of every claimed dtype comes back from the device with the bits it went with.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html",
    fault="copy_drops_last_element",
    profile="smoke",
)
def round_trip(device: Device) -> None:
    for dtype in dtypes(device):
        sent = ramp(97, dtype)
        there = sent.to(device.first)
        expect.on_device(there, device.first, f"{dtype} .to(device)")
        expect.values(there, sent, f"{dtype} round trip")


@clause(
    "transfer/host-to-device/special-values",
    words="NaN, infinities, both zeros and subnormal numbers survive the way there and back bit by bit.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html",
    fault="copy_rounds_to_bfloat16",
)
def special_values(device: Device) -> None:
    sent = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-45, 1.1754943e-38, 1 + 2**-23])
    back = sent.to(device.first).to("cpu")
    expect.equal(back.view(torch.int32).tolist(), sent.view(torch.int32).tolist(), "bits after the round trip")


@clause(
    "transfer/host-to-device/copies",
    words="A transfer is a copy: later writes on one side do not reach the other.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html",
    fault="copy_drops_last_element",
)
def transfer_copies(device: Device) -> None:
    host = torch.arange(8.0)
    there = host.to(device.first, copy=True)
    host.zero_()
    expect.values(there, torch.arange(8.0), "device tensor after the host tensor was zeroed")
    back = there.to("cpu", copy=True)
    there.fill_(7)
    expect.values(back, torch.arange(8.0), "host copy after the device tensor was filled")


@clause(
    "transfer/to/is-identity-where-nothing-changes",
    words="`.to` the device and dtype that a tensor has returns the tensor itself; copy=True makes another.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html",
    fault="to_always_copies",
)
def to_is_identity(device: Device) -> None:
    there = torch.arange(4.0).to(device.first)
    expect.true(there.to(device.first) is there, "another tensor", "the tensor itself", "x.to(x.device)")
    expect.true(there.to(torch.float32) is there, "another tensor", "the tensor itself", "x.to(x.dtype)")
    copy = there.to(device.first, copy=True)
    copy.zero_()
    expect.values(there, torch.arange(4.0), "x after x.to(x.device, copy=True).zero_()")


@clause(
    "transfer/to/converts-on-the-way",
    words="`.to(device, dtype)` gives the values that converting first and moving then gives.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html",
    fault="copy_rounds_to_bfloat16",
)
def converts_on_the_way(device: Device) -> None:
    known = dtypes(device)
    host = torch.tensor([-3.75, -0.5, 0.0, 0.25, 2.5, 100.25, 1.0009765625])
    for dtype in known:
        if dtype in (torch.uint8,):
            continue  # negative numbers to unsigned: the result is not defined
        expect.values(host.to(device.first, dtype), host.to(dtype), f"float32 .to(device, {dtype})")
        expect.values(host.to(device.first).to("cpu", dtype), host.to(dtype), f"device float32 .to(cpu, {dtype})")


@clause(
    "transfer/strides/non-contiguous",
    words="Transposed, sliced and stepped tensors arrive with the values of their elements in order.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.copy_.html",
    fault="clone_ignores_strides",
)
def non_contiguous(device: Device) -> None:
    base = ramp(60, torch.float32).reshape(5, 12)
    for name, view in {
        "transposed": base.t(),
        "columns": base[:, 3:7],
        "every second": base[::2, ::3],
        "permuted": base.reshape(3, 4, 5).permute(2, 0, 1),
    }.items():
        expect.values(view.to(device.first), view.contiguous(), f"{name}, host to device")
    there = base.to(device.first)
    for name, got, wanted in (
        ("transposed", there.t(), base.t()),
        ("columns", there[:, 3:7], base[:, 3:7]),
        ("every second", there[::2, ::3], base[::2, ::3]),
        ("transposed and cloned", there.t().clone(), base.t()),
    ):
        expect.values(got, wanted.contiguous(), f"{name}, device to host")


@clause(
    "transfer/strides/are-kept",
    words="Moving a dense permuted tensor keeps its strides; a slice becomes contiguous.",
    source="https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.memory_format, torch.preserve_format",
    fault="strides_ignored",
)
def strides_are_kept(device: Device) -> None:
    dense = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
    expect.equal(
        dense.to(device.first).stride(), dense.stride(), "strides of a dense permuted tensor after .to(device)"
    )
    images = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    moved = images.to(device.first)
    expect.equal(moved.is_contiguous(memory_format=torch.channels_last), True, "channels_last after .to(device)")


@clause(
    "transfer/offset/is-honoured",
    words="A view that starts inside its storage is read and written at its own place, and nowhere else.",
    source="https://docs.pytorch.org/docs/stable/tensor_view.html",
    fault="copy_ignores_storage_offset",
)
def offset_is_honoured(device: Device) -> None:
    there = torch.arange(10.0).to(device.first)
    expect.values(there[3:7], torch.arange(3.0, 7.0), "x[3:7] to the host")
    there[4:6].copy_(torch.tensor([-1.0, -2.0]))
    expect.values(there, torch.tensor([0.0, 1, 2, 3, -1, -2, 6, 7, 8, 9]), "x after x[4:6].copy_(...)")
    target = torch.zeros(10)
    target[2:5].copy_(there[5:8])
    expect.values(target, torch.tensor([0.0, 0, -2, 6, 7, 0, 0, 0, 0, 0]), "host y after y[2:5].copy_(x[5:8])")


@clause(
    "transfer/size/zero-and-scalar",
    words="Tensors without elements and tensors without dimensions move like any other.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html",
    fault="zero_size_is_an_error",
)
def zero_and_scalar(device: Device) -> None:
    for shape in ((0,), (3, 0, 2), (0, 0)):
        there = torch.zeros(shape).to(device.first)
        expect.on_device(there, device.first, f"zeros{shape}.to(device)")
        expect.values(there, torch.zeros(shape), f"zeros{shape} round trip")
    scalar = torch.tensor(3.5).to(device.first)
    expect.values(scalar, torch.tensor(3.5), "0-dim tensor round trip")
    expect.equal(scalar.item(), 3.5, "0-dim tensor .item()")


@clause(
    "transfer/copy/broadcasts",
    words="copy_ across devices broadcasts its source, as it does on one device.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.copy_.html",
    fault="copy_drops_last_element",
)
def copy_broadcasts(device: Device) -> None:
    there = torch.zeros(3, 4, device=device.first)
    there.copy_(torch.arange(4.0))
    expect.values(there, torch.arange(4.0).expand(3, 4).contiguous(), "zeros(3, 4).copy_(arange(4))")
    there.copy_(torch.tensor([[1.0], [2.0], [3.0]]))
    expect.values(there, torch.tensor([[1.0], [2.0], [3.0]]).expand(3, 4).contiguous(), "copy_ of a column")
    host = torch.zeros(2, 3)
    host.copy_(torch.arange(3.0).to(device.first))
    expect.values(host, torch.arange(3.0).expand(2, 3).contiguous(), "host copy_ of a device row")


@clause(
    "transfer/copy/converts-and-returns-itself",
    words="copy_ converts to the dtype of its target, writes in place, and returns the target.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.copy_.html",
    fault="copy_drops_last_element",
)
def copy_converts(device: Device) -> None:
    target = torch.zeros(3, dtype=torch.int32, device=device.first)
    address = target.data_ptr()
    result = target.copy_(torch.tensor([1.9, -2.9, 70000.5]))
    expect.true(result is target, "another tensor", "the target", "copy_ returns")
    expect.equal(target.data_ptr(), address, "data_ptr after copy_")
    expect.values(target, torch.tensor([1, -2, 70000], dtype=torch.int32), "int32 copy_ of float32")


@clause(
    "transfer/copy/large",
    words="A copy of several megabytes is complete, at both ends and in between.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.copy_.html",
    fault="copy_drops_last_element",
)
def copy_large(device: Device) -> None:
    sent = torch.arange((1 << 20) + 3, dtype=torch.int32)
    expect.values(sent.to(device.first), sent, "4 MiB of int32")


@clause(
    "transfer/views/stay-views",
    words="A view of a device tensor shares its memory: writes through either are seen through the other.",
    source="https://docs.pytorch.org/docs/stable/tensor_view.html",
    fault="view_copies",
    profile="smoke",
)
def views_stay_views(device: Device) -> None:
    base = torch.zeros(2, 6, device=device.first)
    base.view(12)[3] = 5
    base.t()[5, 1] = 7
    base[1, 1:3].fill_(2)
    wanted = torch.zeros(2, 6)
    wanted[0, 3], wanted[1, 5] = 5, 7
    wanted[1, 1:3] = 2
    expect.values(base, wanted, "base after writes through view, t and a slice")
    expect.equal(base.view(12).data_ptr(), base.data_ptr(), "data_ptr of a view")


@clause(
    "transfer/version/in-place-counts",
    words="Writing to a tensor in place raises its version, so that autograd can refuse a stale gradient.",
    source="https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks",
    fault="inplace_no_version_bump",
)
def in_place_counts(device: Device) -> None:
    tensor = torch.zeros(3, device=device.first)
    add, copy = ("add_", lambda: tensor.add_(1)), ("copy_", lambda: tensor.copy_(torch.ones(3)))
    # More than once each: a version that is set once is not counted.
    for name, write in (add, add, copy, copy, add):
        before = tensor._version
        write()
        expect.true(tensor._version > before, tensor._version, f"more than {before}", f"version after {name}")


@clause(
    "transfer/device-to-device/round-trip",
    words="A tensor moved to another device holds the values of its source, not of what was there.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html",
    fault="d2d_copies_wrong_device",
    devices=2,
)
def device_to_device(device: Device) -> None:
    first = torch.arange(33.0).to(device.first)
    second = torch.full((33,), -1.0).to(device.second)
    moved = first.to(device.second)
    expect.on_device(moved, device.second, "x.to(second)")
    expect.values(moved, torch.arange(33.0), "x.to(second)")
    second.copy_(first)
    expect.values(second, torch.arange(33.0), "second.copy_(first)")
    second.add_(1)
    first.copy_(second)
    expect.values(first, torch.arange(33.0) + 1, "first.copy_(second)")


@clause(
    "transfer/device-to-device/strides-and-dtype",
    words="copy_ between devices honours strides, offsets and dtypes of both sides.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.copy_.html",
    fault="copy_ignores_storage_offset",
    devices=2,
)
def device_to_device_strides(device: Device) -> None:
    source = torch.arange(24.0).reshape(4, 6).to(device.first)
    target = torch.zeros(6, 5, dtype=torch.int64, device=device.second)
    target[1:5, 1:].copy_(source[:, 1:5].t())
    wanted = torch.zeros(6, 5, dtype=torch.int64)
    wanted[1:5, 1:] = torch.arange(24.0).reshape(4, 6)[:, 1:5].t().to(torch.int64)
    expect.values(target, wanted, "second[1:5, 1:].copy_(first[:, 1:5].t())")


@clause(
    "transfer/pinned/is-pinned",
    words="pin_memory gives page-locked host memory that says so, holds the values and is not the original.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.pin_memory.html",
    fault="pin_does_nothing",
    needs=("pinned_memory",),
)
def pinned_is_pinned(device: Device) -> None:
    plain = torch.arange(64.0)
    expect.equal(plain.is_pinned(), False, "is_pinned() of an ordinary tensor")
    pinned = plain.pin_memory()
    expect.equal(pinned.is_pinned(), True, "is_pinned() after pin_memory()")
    expect.on_device(pinned, torch.device("cpu"), "x.pin_memory()")
    expect.values(pinned, plain, "x.pin_memory()")
    expect.equal(pinned[5:].is_pinned(), True, "is_pinned() of a view into pinned memory")
    expect.true(pinned.data_ptr() != plain.data_ptr(), "the same address", "another", "data_ptr of x.pin_memory()")
    expect.true(pinned.pin_memory() is pinned, "another tensor", "itself", "pin_memory() of pinned memory")
    expect.equal(torch.empty(8, pin_memory=True).is_pinned(), True, "is_pinned() of torch.empty(8, pin_memory=True)")


@clause(
    "transfer/pinned/non-blocking-to-device",
    words="A non-blocking copy from pinned memory returns at once and keeps its place in the stream.",
    source="https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
    fault="nonblocking_blocks",
    needs=("pinned_memory", "streams"),
    cost=0.3,
)
def non_blocking_to_device(device: Device) -> None:
    source = torch.arange(1024.0).pin_memory()
    there = torch.zeros(1024, device=device.first)
    device.synchronize()
    took = delay(device, device.first)
    begin = time.perf_counter()
    there.copy_(source, non_blocking=True)
    host = time.perf_counter() - begin
    if not runs_at_once(took):
        expect.true(host < DELAY_S / 2, round(host, 4), f"less than {DELAY_S / 2} s", "time the host spent in copy_")
    there.add_(1)
    expect.values(there, torch.arange(1024.0) + 1, "delay, non-blocking copy, add, in that order")


@clause(
    "transfer/pinned/non-blocking-to-host",
    words="A non-blocking copy to pinned memory waits for the work before it, and is there after synchronisation.",
    source="https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
    fault="nonblocking_runs_before_stream",
    needs=("pinned_memory", "streams"),
    cost=0.3,
)
def non_blocking_to_host(device: Device) -> None:
    target = torch.zeros(1024).pin_memory()
    there = torch.full((1024,), 5.0, device=device.first)
    mark = torch.Event(device=device.first)
    device.synchronize()
    delay(device, device.first)
    mark.record(torch.accelerator.current_stream())
    target.copy_(there, non_blocking=True)
    # Host memory can be read while the stream works; the order of these two reads matters.
    arrived = float(target[0])
    done = mark.query()
    expect.true(done or arrived == 0, arrived, "0.0", "pinned target while the work before the copy is pending")
    device.synchronize()
    expect.values(target, torch.full((1024,), 5.0), "pinned target after synchronize")
