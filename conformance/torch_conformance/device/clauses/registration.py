"""Registration: the device is known by its name everywhere PyTorch keeps a name."""

from __future__ import annotations

import torch

from .. import expect
from ..clause import clause
from ..target import Device


@clause(
    "registration/device/parses-its-name",
    words="torch.device(NAME) gives a device of that type that prints its name and equals itself.",
    source="https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device",
    fault="wrong_device_name",
    profile="smoke",
)
def parses_its_name(device: Device) -> None:
    parsed = torch.device(device.type)
    expect.equal(parsed.type, device.type, "torch.device(NAME).type")
    expect.equal(str(device.first).split(":")[0], device.type, "str(torch.device(NAME, 0)), before the colon")
    expect.equal(torch.device(str(device.first)), device.first, "torch.device(str(device))")


@clause(
    "registration/tensor/reports-its-device",
    words="A tensor made on the device says so: device, device type and index.",
    source="https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device",
    fault="wrong_device_index",
    profile="smoke",
)
def tensor_reports_its_device(device: Device) -> None:
    tensor = torch.empty(2, device=device.first)
    expect.on_device(tensor, device.first, "torch.empty(2, device=first)")
    expect.equal(tensor.device.type, device.type, "tensor.device.type")
    expect.equal(tensor.is_cpu, device.type == "cpu", "tensor.is_cpu")
