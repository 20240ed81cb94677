"""Faults laid over any backend's operators, so that the suite can be proven to notice.

Each takes the place of one operator's kernel at the dispatch key of the device under test and calls the kernel that was
there. Switched on in the device process only, by ``TORCH_CONFORMANCE_FAULTS=NAME,...``: the oracle stays clean.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .target import Device

Kernel = Callable[..., Any]
Wrong = Callable[..., Any]

_libraries: list[torch.library.Library] = []
"""Registrations live as long as their library objects."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """One way in which operators can be wrong.

    Attributes:
        name: of the fault.
        words: what goes wrong.
        operators: ``aten`` overloads whose kernels are replaced.
        caught_by: id of a case that must notice.
        wrong: called with the device, the kernel that was there, and the operator's arguments.
    """

    name: str
    words: str
    operators: tuple[str, ...]
    caught_by: str
    wrong: Wrong


OVERLAYS: dict[str, Overlay] = {}


def overlay(*operators: str, caught_by: str) -> Callable[[Wrong], Wrong]:
    """Register the decorated function as an overlay under its name; its docstring says what goes wrong."""

    def register(wrong: Wrong) -> Wrong:
        assert wrong.__doc__, f"{wrong.__name__} does not say what it breaks"
        OVERLAYS[wrong.__name__] = Overlay(wrong.__name__, wrong.__doc__, operators, caught_by, wrong)
        return wrong

    return register


def switch_overlays(names: Sequence[str], device: Device) -> None:
    """Lay the named overlays over ``device``.

    Raises:
        KeyError: for a name that is no overlay.
    """
    for name in names:
        _lay(OVERLAYS[name], device)


def _lay(fault: Overlay, device: Device) -> None:
    key = dispatch_key(device.type)
    library = torch.library.Library("aten", "IMPL")
    for name in fault.operators:
        overload = _overload(name)
        kernel = torch.library.get_kernel(overload, key)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel is replaced is the point
            library.impl(
                overload, _replacement(fault, kernel, overload, device), key, with_keyset=True, allow_override=True
            )
    _libraries.append(library)


def _overload(name: str) -> torch._ops.OpOverload:
    operator, _, overload = name.partition(".")
    found: torch._ops.OpOverload = getattr(getattr(torch.ops.aten, operator), overload or "default")
    return found


def _replacement(fault: Overlay, kernel: Any, overload: torch._ops.OpOverload, device: Device) -> Kernel:
    tensors = [str(argument.type) == "Tensor" for argument in overload._schema.arguments]

    def replacement(keyset: torch._C.DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
        def original(*args: Any, **kwargs: Any) -> Any:
            # A Python number stands in a Tensor argument when the caller wrote one; kernels take tensors only.
            given = [
                torch.tensor(item) if is_tensor and isinstance(item, (bool, int, float, complex)) else item
                for item, is_tensor in zip(args, tensors, strict=False)
            ]
            return kernel.call_boxed(keyset, *given, **kwargs)

        return fault.wrong(device, original, *args, **kwargs)

    return replacement


def dispatch_key(device_type: str) -> str:
    """The dispatch key of a device type; a renamed PrivateUse1 device has the key of its slot."""
    known = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU", "mps": "MPS", "hpu": "HPU", "mtia": "MTIA", "meta": "Meta"}
    return known.get(device_type, "PrivateUse1")


# Values


@overlay("mul.Tensor", caught_by="op/mul/forward/float32/-")
def mul_off_by_ulp(target: Device, original: Kernel, /, *args: Any) -> torch.Tensor:
    """float32 products are off by one unit in the last place."""
    out: torch.Tensor = original(*args)
    return out.view(torch.int32).add(1).view(torch.float32) if out.dtype is torch.float32 else out


@overlay("cat", caught_by="op/cat/forward/float32/-")
def cat_drops_last_element(target: Device, original: Kernel, /, *args: Any, **kwargs: Any) -> torch.Tensor:
    """The last element of a concatenation stays zero."""
    out: torch.Tensor = original(*args, **kwargs)
    if out.numel() > 1:
        out.view(-1)[-1:].zero_()
    return out


@overlay("round", caught_by="op/round/forward/float32/-")
def round_loses_sign_of_zero(target: Device, original: Kernel, /, *args: Any) -> torch.Tensor:
    """A small negative number rounds to zero, not to negative zero."""
    out: torch.Tensor = original(*args)
    return out.add(0.0) if out.is_floating_point() else out


@overlay("floor_divide", caught_by="op/floor_divide/forward/int64/-")
def floor_divide_truncates(target: Device, original: Kernel, /, x: Any, y: Any) -> torch.Tensor:
    """Integer division of negative numbers rounds to zero."""
    out: torch.Tensor = torch.div(x, y, rounding_mode="trunc")
    return out


@overlay("pow.Tensor_Tensor", caught_by="op/pow/forward/int8/-")
def integers_saturate(target: Device, original: Kernel, /, x: Any, y: Any) -> torch.Tensor:
    """An int8 power that overflows sticks at the largest value and does not wrap."""
    out: torch.Tensor = original(x, y)
    if out.dtype is not torch.int8:
        return out
    return original(x.to(torch.int64), y.to(torch.int64)).clamp(-128, 127).to(torch.int8)


@overlay("_conj_physical", caught_by="op/conj_physical/forward/complex64/-")
def conjugate_forgotten(target: Device, original: Kernel, /, x: torch.Tensor) -> torch.Tensor:
    """conj_physical copies complex numbers as they are."""
    return x.clone()


@overlay("sort.stable", caught_by="op/sort/forward/float32/-")
def sort_indices_reversed(target: Device, original: Kernel, /, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
    """sort returns its values in order and its indices backwards."""
    values, indices = original(*args, **kwargs)
    return values, indices.flip(-1) if indices.dim() else indices


@overlay("mean.dim", caught_by="op/mean/forward/float32/-")
def mean_keepdim_takes_other_dimension(
    device: Device, original: Kernel, x: Any, dim: Any, *args: Any, **kw: Any
) -> Any:
    """With keepdim, mean reduces over the dimension before the one that is named."""
    if args and args[0] and dim is not None and len(dim) == 1 and x.dim() > 1:
        dim = [(dim[0] - 1) % x.dim()]
    return original(x, dim, *args, **kw)


@overlay("gather", caught_by="op/gather/forward/float32/-")
def gather_reads_one_before(target: Device, original: Kernel, /, x: Any, dim: int, index: Any, **kwargs: Any) -> Any:
    """gather reads the element before the one that is asked for."""
    return original(x, dim, (index - 1).clamp(min=0) if index.numel() else index, **kwargs)


@overlay("var.correction", caught_by="op/var/forward/float32/-")
def variance_ignores_correction(target: Device, original: Kernel, /, x: Any, dim: Any = None, **kwargs: Any) -> Any:
    """var divides by the number of elements, whatever correction is asked for."""
    return original(x, dim, **{**kwargs, "correction": 0})


# Only under some circumstance


@overlay("_linalg_det", caught_by="op/linalg.det/forward/float32/-")
def empty_determinant_is_zero(target: Device, original: Kernel, /, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The determinant of a matrix without elements is zero and not one."""
    out, *rest = original(x)
    return (out.zero_() if x.shape[-1] == 0 else out, *rest)


@overlay("clone", caught_by="op/ravel/forward/float32/-")
def clone_ignores_strides(target: Device, original: Kernel, /, x: torch.Tensor, **kwargs: Any) -> torch.Tensor:
    """Cloning a non-contiguous tensor reads its memory in order."""
    if x.layout == torch.strided and not x.is_contiguous() and x.numel() and 0 not in x.stride():
        x = x.as_strided(x.shape, torch.empty(x.shape, device="meta").stride())
    out: torch.Tensor = original(x, **kwargs)
    return out


@overlay("empty.memory_format", "empty_strided", caught_by="transfer/size/zero-and-scalar/-/-")
def zero_size_is_an_error(target: Device, original: Kernel, /, size: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """A tensor without elements cannot be made."""
    if 0 in size and len(size) > 1:
        raise RuntimeError(f"cannot allocate a tensor of size {size}")
    out: torch.Tensor = original(size, *args, **kwargs)
    return out


# Metadata, memory, gradients


@overlay("empty.memory_format", caught_by="factory/filled/dtype/-/-")
def factory_ignores_dtype(target: Device, original: Kernel, /, size: Any, **kwargs: Any) -> torch.Tensor:
    """Where float16 is asked for, float32 is made."""
    if kwargs.get("dtype") is torch.float16:
        kwargs["dtype"] = torch.float32
    out: torch.Tensor = original(size, **kwargs)
    return out


@overlay("empty_strided", caught_by="factory/unfilled/shape-and-strides/-/-")
def strides_ignored(target: Device, original: Kernel, /, size: Any, stride: Any, **kwargs: Any) -> torch.Tensor:
    """Memory that is asked for with strides is contiguous."""
    contiguous = torch.empty(size, device="meta").stride()
    out: torch.Tensor = original(size, contiguous, **kwargs)
    return out


@overlay("empty.memory_format", caught_by="factory/memory/is-its-own/-/-")
def allocations_overlap(target: Device, original: Kernel, /, size: Any, **kwargs: Any) -> torch.Tensor:
    """Small tensors of one dtype all lie at the same address."""
    key = kwargs.get("dtype") or torch.get_default_dtype()
    count = 1
    for length in size:
        count *= length
    if key is not torch.float32 or count > 1024:
        return original(size, **kwargs)
    if key not in _shared:
        _shared[key] = original([1024], **kwargs)
    return _shared[key][:count].view(list(size)).detach()


@overlay("argmax", caught_by="op/argmax/forward/float32/-")
def argmax_is_int32(target: Device, original: Kernel, /, *args: Any) -> torch.Tensor:
    """argmax gives int32 indices."""
    out: torch.Tensor = original(*args)
    return out.to(torch.int32)


@overlay("tril", caught_by="op/tril/forward/float32/-")
def output_has_transposed_strides(target: Device, original: Kernel, /, *args: Any) -> torch.Tensor:
    """Results of two or more dimensions are laid out as their transpose is."""
    out: torch.Tensor = original(*args)
    return out.mT.contiguous().mT if out.dim() >= 2 else out


@overlay("neg", caught_by="op/neg/forward/float32/-")
def neg_writes_to_its_input(target: Device, original: Kernel, /, x: torch.Tensor) -> torch.Tensor:
    """neg is right, but its input is negated too."""
    out: torch.Tensor = original(x)
    if not x._is_zerotensor():
        x.copy_(out)
    return out


@overlay("zero_", caught_by="op/zero_/forward/float32/-")
def zero_not_in_place(target: Device, original: Kernel, /, x: torch.Tensor) -> torch.Tensor:
    """zero_ zeroes a copy."""
    return x


@overlay("set_.source_Storage_storage_offset", caught_by="factory/set/shares-a-storage/-/-")
def set_copies(target: Device, original: Kernel, /, x: torch.Tensor, storage: Any, *args: Any) -> torch.Tensor:
    """set_ gives a tensor a copy of the storage."""
    out: torch.Tensor = original(x, storage.clone(), *args)
    return out


@overlay("tanh_backward", caught_by="op/tanh/backward/float32/-")
def gradient_twice_as_large(target: Device, original: Kernel, /, *args: Any) -> torch.Tensor:
    """The gradient of tanh is doubled."""
    out: torch.Tensor = original(*args)
    return out * 2


@overlay("index_select", caught_by="op/index_select/forward/float32/-")
def refused_without_reason(target: Device, original: Kernel, /, *args: Any) -> torch.Tensor:
    """index_select raises NotImplementedError."""
    raise NotImplementedError("aten::index_select is not implemented on this device")


# Random numbers


@overlay("uniform_", caught_by="op/uniform/forward/float32/-")
def uniform_does_not_advance(target: Device, original: Kernel, /, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Uniform numbers leave the generator as it was."""
    state = target.get_rng_state()
    out: torch.Tensor = original(*args, **kwargs)
    target.set_rng_state(state)
    return out


@overlay("normal_", caught_by="op/randn_like/forward/float32/-")
def normal_is_too_wide(target: Device, original: Kernel, /, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Normal numbers have twice the standard deviation."""
    out: torch.Tensor = original(*args, **kwargs)
    return out.mul_(2)


@overlay("random_.from", caught_by="op/randint/forward/float32/-")
def integers_ignore_the_seed(
    device: Device, original: Kernel, x: torch.Tensor, *args: Any, **kwargs: Any
) -> torch.Tensor:
    """Random integers come from a count that no seed resets."""
    original(x, *args, **kwargs)
    _counter[0] += 1
    x.add_(_counter[0] % 3)
    return x


_shared: dict[torch.dtype, torch.Tensor] = {}
_counter = [0]
