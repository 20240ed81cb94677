"""Factories: every function that makes a tensor from nothing makes it on the device, of the dtype asked for."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .. import expect
from ..clause import clause
from ..target import Device

Factory = Callable[..., torch.Tensor]

FILLED: dict[str, Factory] = {
    "zeros": lambda **k: torch.zeros(2, 3, **k),
    "ones": lambda **k: torch.ones(2, 3, **k),
    "full": lambda **k: torch.full((2, 3), 7, **k),
    "eye": lambda **k: torch.eye(3, 4, **k),
    "arange": lambda **k: torch.arange(1, 11, 3, **k),
    "linspace": lambda **k: torch.linspace(0, 8, 5, **k),
    "logspace": lambda **k: torch.logspace(0, 3, 4, base=2.0, **k),
    "scalar_tensor": lambda **k: torch.scalar_tensor(5, **k),
    "tensor": lambda **k: torch.tensor([[1, 2], [3, 4]], **k),
    "asarray": lambda **k: torch.asarray([1, 2, 3], **k),
}
"""Factories whose contents are fixed by their arguments."""

UNFILLED: dict[str, Factory] = {
    "empty": lambda **k: torch.empty(2, 3, **k),
    "empty_strided": lambda **k: torch.empty_strided((2, 3), (1, 2), **k),
    "empty_permuted": lambda **k: torch.empty_permuted((2, 3), (1, 0), **k),
}

LIKE: dict[str, Factory] = {
    "zeros_like": lambda x, **k: torch.zeros_like(x, **k),
    "ones_like": lambda x, **k: torch.ones_like(x, **k),
    "full_like": lambda x, **k: torch.full_like(x, 4, **k),
    "new_zeros": lambda x, **k: x.new_zeros(2, 5, **k),
    "new_ones": lambda x, **k: x.new_ones(2, 5, **k),
    "new_full": lambda x, **k: x.new_full((2, 5), 3, **k),
    "new_tensor": lambda x, **k: x.new_tensor([1, 2, 3], **k),
}


@clause(
    "factory/filled/device-and-values",
    words="zeros, ones, full, eye, arange, linspace, logspace, tensor and the like fill device memory as on the CPU.",
    source="https://docs.pytorch.org/docs/stable/torch.html#creation-ops",
    fault="copy_drops_last_element",
    profile="smoke",
)
def filled(device: Device) -> None:
    for name, factory in FILLED.items():
        made = factory(device=device.first)
        expect.on_device(made, device.first, f"torch.{name}")
        wanted = factory()
        if wanted.is_floating_point() and name in ("linspace", "logspace"):
            expect.close(made, wanted, f"torch.{name}", 1e-6)
        else:
            expect.values(made, wanted, f"torch.{name}")


@clause(
    "factory/filled/dtype",
    words="A factory makes the dtype it is asked for.",
    source="https://docs.pytorch.org/docs/stable/torch.html#creation-ops",
    fault="factory_ignores_dtype",
)
def filled_dtype(device: Device) -> None:
    for dtype in (torch.int32, torch.float16, torch.bfloat16, torch.float32):
        for name in ("zeros", "ones", "full", "arange", "tensor", "eye"):
            made = FILLED[name](device=device.first, dtype=dtype)
            # Not the dtype of a CPU tensor: where the CPU is the device under test, it would be wrong in the same way.
            expect.equal(made.dtype, dtype, f"dtype of torch.{name}(dtype={dtype})")
            expect.values(made, FILLED[name](dtype=dtype), f"torch.{name}({dtype})")


@clause(
    "factory/unfilled/shape-and-strides",
    words="empty, empty_strided and empty_permuted give the shape and strides asked for, in writable memory.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.empty_strided.html",
    fault="strides_ignored",
)
def unfilled(device: Device) -> None:
    for name, factory in UNFILLED.items():
        made, wanted = factory(device=device.first), factory(device="meta")
        expect.on_device(made, device.first, f"torch.{name}")
        expect.equal((made.shape, made.stride(), made.dtype), (wanted.shape, wanted.stride(), wanted.dtype), name)
        made.fill_(3)
        expect.values(made, torch.full((2, 3), 3.0), f"torch.{name}().fill_(3)")


@clause(
    "factory/memory/is-its-own",
    words="Tensors made one after the other do not overlap: writing one leaves the others as they are.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.empty.html",
    fault="allocations_overlap",
)
def memory_is_its_own(device: Device) -> None:
    tensors = [
        torch.full((size,), float(number), device=device.first) for number, size in enumerate((1, 7, 33, 513, 5))
    ]
    tensors[2].fill_(-1)
    for number, tensor in enumerate(tensors):
        wanted = -1.0 if number == 2 else float(number)
        # Not against another tensor, which may overlap in the same way.
        expect.equal(set(tensor.tolist()), {wanted}, f"values in tensor {number} of {len(tensors)}")


@clause(
    "factory/like/follows-its-model",
    words="The *_like and new_* factories take device and dtype from their model, and another device when it is named.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.zeros_like.html",
    fault="like_forgets_device",
)
def like_follows(device: Device) -> None:
    model = torch.arange(6, dtype=torch.int16).reshape(2, 3)
    there = model.to(device.first)
    for name, factory in LIKE.items():
        made = factory(there)
        expect.on_device(made, device.first, name)
        expect.values(made, factory(model), name)
        expect.on_device(factory(model, device=device.first), device.first, f"{name}(cpu tensor, device=...)")
        expect.on_device(factory(there, device="cpu"), torch.device("cpu"), f"{name}(device tensor, device='cpu')")


@clause(
    "factory/like/keeps-strides",
    words="empty_like and its kin keep the strides of a dense model.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.empty_like.html",
    fault="strides_ignored",
)
def like_keeps_strides(device: Device) -> None:
    model = torch.arange(24.0).reshape(2, 3, 4).permute(1, 2, 0).to(device.first)
    for name, factory in {
        "empty_like": torch.empty_like,
        "ones_like": torch.ones_like,
        "rand_like": torch.rand_like,
    }.items():
        expect.equal(factory(model).stride(), (4, 1, 12), f"torch.{name}(permuted).stride()")
    contiguous = torch.empty_like(model, memory_format=torch.contiguous_format)
    expect.equal(contiguous.stride(), (8, 2, 1), "empty_like(memory_format=contiguous_format).stride()")


@clause(
    "factory/requires-grad/is-honoured",
    words="requires_grad=True makes a leaf whose gradient arrives on the device.",
    source="https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad",
    fault="mul_off_by_ulp",
    profile="smoke",
)
def requires_grad(device: Device) -> None:
    made = torch.ones(3, device=device.first, requires_grad=True)
    expect.equal((made.requires_grad, made.is_leaf), (True, True), "requires_grad, is_leaf of torch.ones")
    (made * torch.arange(3.0).to(device.first)).sum().backward()
    assert made.grad is not None
    expect.on_device(made.grad, device.first, "grad")
    expect.values(made.grad, torch.arange(3.0), "gradient of sum(x * arange)")


@clause(
    "factory/sequence/from-python-data",
    words="torch.tensor and as_tensor put nested Python numbers and CPU tensors on the device with the inferred dtype.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.tensor.html",
    fault="copy_drops_last_element",
)
def from_python(device: Device) -> None:
    for data in ([True, False], [1, 2, 3], [[1.5, 2], [3, 4]], 5, [], [1 + 2j]):
        expect.values(torch.tensor(data, device=device.first), torch.tensor(data), f"torch.tensor({data})")
    host = torch.arange(5.0)
    expect.on_device(torch.as_tensor(host, device=device.first), device.first, "torch.as_tensor(cpu tensor)")
    there = host.to(device.first)
    expect.true(torch.as_tensor(there, device=device.first) is there, "another", "itself", "as_tensor(device tensor)")


@clause(
    "factory/default-dtype/is-followed",
    words="Without a dtype, floating factories follow torch.set_default_dtype.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.set_default_dtype.html",
    fault="factory_ignores_dtype",
)
def default_dtype(device: Device) -> None:
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float16)
        for name in ("zeros", "ones", "eye"):
            expect.equal(FILLED[name](device=device.first).dtype, torch.float16, f"torch.{name} under float16")
    finally:
        torch.set_default_dtype(before)


@clause(
    "factory/resize/keeps-data",
    words="resize_ keeps what fits, in place, and grows its storage when it must.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.resize_.html",
    fault="resize_loses_data",
)
def resize_keeps_data(device: Device) -> None:
    tensor = torch.arange(6.0).to(device.first)
    tensor.resize_(2, 2)
    expect.values(tensor, torch.arange(4.0).reshape(2, 2), "arange(6).resize_(2, 2)")
    tensor.resize_(3000)
    expect.equal(tensor.untyped_storage().nbytes(), 12000, "bytes of the storage after resize_(3000)")
    expect.values(tensor[:6], torch.arange(6.0), "first elements after growing")


@clause(
    "factory/set/shares-a-storage",
    words="set_ makes a tensor look at another's storage, without a copy.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.set_.html",
    fault="set_copies",
)
def set_shares(device: Device) -> None:
    source = torch.arange(6.0).to(device.first)
    target = torch.empty(0, device=device.first)
    target.set_(source.untyped_storage(), 1, (2, 2), (2, 1))
    expect.values(target, torch.tensor([[1.0, 2], [3, 4]]), "set_(storage, 1, (2, 2), (2, 1))")
    target.zero_()
    expect.values(source, torch.tensor([0.0, 0, 0, 0, 0, 5]), "the source after target.zero_()")
