"""Test support: PyTorch's own helpers for tests and diagnosis, where a wrong answer skips tests or blames CUDA."""

from __future__ import annotations

import gc
import unittest

import torch

from .. import expect
from ..clause import clause
from ..failure import Mismatch, Refused
from ..target import Device

HELD_BYTES = 64 << 20
"""More than a caching allocator may have had reserved before."""


@clause(
    "test_support/large-tensor/asks-the-device",
    words="The helper behind largeTensorTest compares the size asked for with the free memory of the device.",
    source="torch/testing/_internal/common_device_type.py, _has_sufficient_memory",
    fault="memory_info_never_changes",
    needs=("memory_stats",),
    cost=2.0,
)
def large_tensor_asks_the_device(device: Device) -> None:
    from torch.testing._internal.common_device_type import _has_sufficient_memory

    place = str(device.first)
    # The helper empties the cache before it looks, so memory that only the cache holds must not count here either.
    gc.collect()
    torch.accelerator.empty_cache()
    free = torch.accelerator.get_memory_info(device.first)[0]
    held = torch.empty(HELD_BYTES, dtype=torch.uint8, device=device.first)
    for size, wanted in ((1024, True), (free, False)):
        try:
            got = _has_sufficient_memory(place, size)
        except unittest.SkipTest as skip:
            raise Mismatch(
                f"_has_sufficient_memory({place!r}, {size}): got SkipTest({str(skip)!r}), wanted {wanted}: every test "
                "with largeTensorTest is skipped on this device"
            ) from skip
        where = f"_has_sufficient_memory({place!r}, {size}) with {held.nbytes} of {free} free bytes taken since"
        expect.equal(got, wanted, where)


@clause(
    "test_support/memory-snapshot/asks-the-device",
    words="A memory snapshot of the current accelerator comes from its own module, or is refused in its name.",
    source="torch/accelerator/memory.py, _snapshot",
    fault="copy_drops_last_element",
    needs=("memory_stats",),
)
def memory_snapshot_asks_the_device(device: Device) -> None:
    if not device.is_accelerator:
        raise Refused(f"{device.type} is not what torch.accelerator speaks of here")
    snapshot = torch.accelerator.memory._snapshot
    held = torch.arange(1024.0).to(device.first)
    if not hasattr(getattr(device.module, "memory", None), "_snapshot"):
        where = "torch.accelerator.memory._snapshot() on a device without snapshots"
        expect.raises(NotImplementedError, snapshot, where, says=device.type)
    else:
        taken = sum(segment["total_size"] for segment in snapshot()["segments"])
        wanted = f"at least the {held.nbytes} bytes of a tensor that is alive"
        expect.true(taken >= held.nbytes, taken, wanted, "total size of all segments of the snapshot")
    expect.values(held, torch.arange(1024.0), "a tensor that was alive during the snapshot")
