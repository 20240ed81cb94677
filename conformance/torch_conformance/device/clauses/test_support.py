"""Test support: what PyTorch's own test helpers decide for the device, where a wrong answer skips tests in silence."""

from __future__ import annotations

import unittest

import torch

from .. import expect
from ..clause import clause
from ..failure import Mismatch
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
