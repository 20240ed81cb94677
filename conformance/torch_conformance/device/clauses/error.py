"""Errors: what a user does wrong raises the exception PyTorch documents, and leaves the device usable."""

from __future__ import annotations

import torch

from .. import expect
from ..clause import clause
from ..target import Device

SOURCE = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-semantics"


def still_works(device: Device, where: str) -> None:
    """Fail unless the device computes after an error."""
    expect.values(torch.ones(3, device=device.first) + 1, torch.full((3,), 2.0), f"1 + 1 after {where}")


@clause(
    "error/device-mismatch/with-the-cpu",
    words="An operator on a device tensor and a CPU tensor with dimensions raises RuntimeError about devices.",
    source=SOURCE,
    fault="same_device_check_missing",
    profile="smoke",
)
def mismatch_with_cpu(device: Device) -> None:
    device.need_index()
    there, host = torch.ones(2, 2, device=device.first), torch.ones(2, 2)
    for name, call in {
        "add": lambda: there + host,
        "mm": lambda: torch.mm(there, host),
        "cat": lambda: torch.cat([there, host]),
        "add_": lambda: there.add_(host),
        "where": lambda: torch.where(there > 0, there, host),
    }.items():
        expect.raises(RuntimeError, call, f"{name}(device tensor, CPU tensor)", "device")
    expect.values(there + torch.tensor(2.0), torch.full((2, 2), 3.0), "device tensor + CPU tensor without dimensions")


@clause(
    "error/device-mismatch/between-devices",
    words="An operator on tensors of two devices raises RuntimeError.",
    source=SOURCE,
    fault="same_device_check_missing",
    devices=2,
)
def mismatch_between(device: Device) -> None:
    one, two = torch.ones(3, device=device.first), torch.ones(3, device=device.second)
    for name, call in {
        "add": lambda: one + two,
        "cat": lambda: torch.cat([one, two]),
        "dot": lambda: one.dot(two),
    }.items():
        expect.raises(RuntimeError, call, f"{name}(first device, second device)", "device")
    still_works(device, "a mixture of devices")


@clause(
    "error/generator/of-another-device",
    words="A CPU generator for a device tensor raises RuntimeError, and draws nothing.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Generator.html",
    fault="cpu_generator_accepted",
    needs=("generator",),
)
def generator_of_another(device: Device) -> None:
    generator = torch.Generator()
    state = generator.get_state()
    tensor = torch.ones(3, device=device.first)
    expect.raises(
        RuntimeError, lambda: tensor.uniform_(generator=generator), "uniform_(generator of the CPU)", "device"
    )
    expect.equal(torch.equal(generator.get_state(), state), True, "state of the CPU generator unchanged")


@clause(
    "error/shape/mismatch",
    words="Shapes that do not fit raise RuntimeError before anything is written.",
    source="https://docs.pytorch.org/docs/stable/notes/broadcasting.html",
    fault="error_swallowed",
    profile="smoke",
)
def shape_mismatch(device: Device) -> None:
    tensor = torch.ones(3, device=device.first)
    expect.raises(RuntimeError, lambda: tensor + torch.ones(4, device=device.first), "ones(3) + ones(4)", "size")
    expect.raises(RuntimeError, lambda: tensor.add_(torch.ones(4, device=device.first)), "ones(3).add_(ones(4))")
    square = torch.ones(2, 2, device=device.first)
    expect.raises(RuntimeError, lambda: torch.mm(square, torch.ones(3, 2, device=device.first)), "mm(2x2, 3x2)")
    expect.values(tensor, torch.ones(3), "the target of the add_ that was refused")
    still_works(device, "shape errors")


@clause(
    "error/index/out-of-range",
    words="A Python index or a dimension out of range raises IndexError.",
    source="https://docs.pytorch.org/docs/stable/tensors.html",
    fault="error_swallowed",
)
def index_out_of_range(device: Device) -> None:
    tensor = torch.ones(3, device=device.first)
    expect.raises(IndexError, lambda: tensor[3], "ones(3)[3]")
    expect.raises(IndexError, lambda: tensor.sum(2), "ones(3).sum(2)", "dimension")
    expect.raises(IndexError, lambda: tensor.unsqueeze(5), "ones(3).unsqueeze(5)")
    still_works(device, "index errors")


@clause(
    "error/singular/linear-algebra",
    words="Inverting a singular matrix raises torch.linalg.LinAlgError.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv.html",
    fault="error_swallowed",
)
def singular(device: Device) -> None:
    kind: type[Exception] = torch.linalg.LinAlgError  # type: ignore[attr-defined]  # documented, not in the stubs
    expect.raises(kind, lambda: torch.linalg.inv(torch.zeros(2, 2, device=device.first)), "inv(zeros)")
    still_works(device, "a singular matrix")


@clause(
    "error/dtype/not-supported",
    words="An operator that has no meaning for a dtype raises RuntimeError or NotImplementedError.",
    source="https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.dtype",
    fault="error_swallowed",
)
def dtype_not_supported(device: Device) -> None:
    booleans = torch.ones(3, dtype=torch.bool, device=device.first)
    expect.raises(RuntimeError, lambda: booleans - booleans, "bool - bool", "not supported")
    integers = torch.ones(3, dtype=torch.int64, device=device.first)
    expect.raises(RuntimeError, lambda: integers.add_(0.5), "int64.add_(0.5)", "cast")
    expect.raises(RuntimeError, lambda: integers.mean(), "int64.mean()", "dtype")
    still_works(device, "dtype errors")


@clause(
    "error/host-access/numpy",
    words="numpy() of a device tensor raises TypeError that says to copy it to host memory first.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html",
    fault="numpy_reads_device_memory",
)
def host_access(device: Device) -> None:
    device.need_index()
    tensor = torch.ones(3, device=device.first)
    expect.raises(TypeError, lambda: tensor.numpy(), "device tensor .numpy()", "host memory")
    expect.equal(tensor.cpu().numpy().tolist(), [1.0, 1.0, 1.0], "tensor.cpu().numpy()")
    expect.equal(tensor.tolist(), [1.0, 1.0, 1.0], "tensor.tolist()")


@clause(
    "error/pin-memory/of-device-memory",
    words="pin_memory of a device tensor raises RuntimeError: only dense CPU tensors can be pinned.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.pin_memory.html",
    fault="mismatched_pin_is_accepted",
    needs=("pinned_memory",),
)
def pin_device_memory(device: Device) -> None:
    tensor = torch.ones(3, device=device.first)
    expect.raises(RuntimeError, lambda: tensor.pin_memory(), "device tensor .pin_memory()", "cpu")


@clause(
    "error/in-place/overlapping-memory",
    words="Writing in place to an expanded tensor raises RuntimeError: its elements share memory.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html",
    fault="error_swallowed",
)
def overlapping(device: Device) -> None:
    tensor = torch.ones(1, device=device.first).expand(3)
    expect.raises(RuntimeError, lambda: tensor.add_(1), "expanded.add_(1)", "memory")
    still_works(device, "a write to overlapping memory")


@clause(
    "error/autograd/stale-version",
    words="Backward through a tensor that was written in place since raises RuntimeError.",
    source="https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks",
    fault="inplace_no_version_bump",
)
def stale_version(device: Device) -> None:
    leaf = torch.ones(3, device=device.first, requires_grad=True)
    squared = leaf.exp()
    squared.mul_(2)
    expect.raises(RuntimeError, lambda: squared.sum().backward(), "backward through an overwritten result", "modified")
    still_works(device, "a refused backward")


@clause(
    "error/memory/too-large",
    words="A tensor larger than the device raises torch.OutOfMemoryError at once, and the device goes on working.",
    source="https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory",
    fault="out_of_memory_is_runtime_error",
    needs=("memory_stats",),
)
def too_large(device: Device) -> None:
    # Far above what is there, so that it is refused by its size and never by filling memory.
    _free, total = torch.accelerator.get_memory_info(device.first)
    before = torch.accelerator.memory_allocated()
    size = total * 4
    expect.raises(
        torch.OutOfMemoryError,
        lambda: torch.empty(size, dtype=torch.uint8, device=device.first),
        f"torch.empty of {size} bytes on a device of {total}",
    )
    expect.equal(torch.accelerator.memory_allocated(), before, "memory_allocated after the refusal")
    still_works(device, "running out of memory")
