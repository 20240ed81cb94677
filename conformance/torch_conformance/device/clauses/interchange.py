"""Interchange: tensors that other libraries read in place, through DLPack."""

from __future__ import annotations

import torch
from torch.utils.dlpack import DLDeviceType

from .. import expect
from ..clause import clause
from ..target import Device


@clause(
    "interchange/dlpack/names-the-device",
    words="A tensor names the DLPack device type that belongs to its device, and the index of its device.",
    source="https://dmlc.github.io/dlpack/latest/python_spec.html#syntax-for-data-interchange-with-dlpack",
    fault="copy_drops_last_element",
)
def dlpack_names_the_device(device: Device) -> None:
    last = device.at(device.count - 1)
    tensor = torch.arange(4.0).to(last)
    kind, index = tensor.__dlpack_device__()
    expect.equal(int(kind), int(_dlpack_type(device)), "int(tensor.__dlpack_device__()[0])")
    expect.equal(index, last.index or 0, "tensor.__dlpack_device__()[1]")
    expect.values(tensor, torch.arange(4.0), "the tensor that was asked")


@clause(
    "interchange/dlpack/shares-memory",
    words="torch.from_dlpack of a tensor gives a tensor on the same device over the same memory.",
    source="https://docs.pytorch.org/docs/stable/dlpack.html",
    fault="copy_drops_last_element",
)
def dlpack_shares_memory(device: Device) -> None:
    last = device.at(device.count - 1)
    tensor = torch.arange(4.0).to(last)
    shared = torch.from_dlpack(tensor)  # type: ignore[attr-defined]  # documented, not in the stubs
    expect.on_device(shared, last, "torch.from_dlpack(tensor)")
    expect.equal(shared.data_ptr(), tensor.data_ptr(), "torch.from_dlpack(tensor).data_ptr()")
    tensor += 1
    expect.values(shared, torch.arange(1.0, 5.0), "torch.from_dlpack(tensor), after adding to tensor in place")


def _dlpack_type(device: Device) -> DLDeviceType:
    if device.type == torch._C._get_privateuse1_backend_name():
        return DLDeviceType.kDLExtDev
    if device.type == "cuda" and torch.version.hip is not None:
        return DLDeviceType.kDLROCM
    names = {"cpu": "kDLCPU", "cuda": "kDLCUDA", "xpu": "kDLOneAPI", "mps": "kDLMetal"}
    return DLDeviceType[names[device.type]]
