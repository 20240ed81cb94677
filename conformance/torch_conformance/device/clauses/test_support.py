"""Test support: what PyTorch's own test helpers decide for the device, where a wrong answer skips tests in silence."""

from __future__ import annotations

import unittest

import torch

from .. import expect
from ..clause import clause
from ..failure import Mismatch
from ..target import Device


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
    held = torch.empty(1 << 20, dtype=torch.uint8, device=device.first)
    free = torch.accelerator.get_memory_info(device.first)[0]
    del held
    for size, wanted in ((1024, True), (free * 64, False)):
        try:
            got = _has_sufficient_memory(place, size)
        except unittest.SkipTest as skip:
            raise Mismatch(
                f"_has_sufficient_memory({place!r}, {size}): got SkipTest({str(skip)!r}), wanted {wanted}: every test "
                "with largeTensorTest is skipped on this device"
            ) from skip
        expect.equal(got, wanted, f"_has_sufficient_memory({place!r}, {size})")
