"""Samples as bytes: tensors of every layout, with exact strides, offsets and shared storages, and back.

A tensor travels as a `TensorForm` over the raw bytes of its storage, so that the receiving process needs no operator
to read it and can put it on any device with one copy.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import math
import pickle
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}
"""The two index tensors of each compressed layout."""


class Unencodable(TypeError):
    """Something among the arguments that cannot travel; the device process makes that sample itself."""


@dataclass(slots=True)
class StorageForm:
    """The bytes of one storage; tensors that share a storage share this object."""

    data: bytes


@dataclass(slots=True)
class TensorForm:
    """A tensor without a device.

    Attributes:
        dtype, shape, requires_grad, layout: as of the tensor; dtype and layout by name.
        storage, stride, offset, conj, neg: of a strided tensor.
        parts: of the other layouts, the tensors it is made of.
        extra: of the other layouts, the plain values it is made of.
        parameter: whether it is an `nn.Parameter`.
    """

    dtype: str
    shape: tuple[int, ...]
    requires_grad: bool
    layout: str = "strided"
    storage: StorageForm | None = None
    stride: tuple[int, ...] = ()
    offset: int = 0
    conj: bool = False
    neg: bool = False
    parts: tuple[TensorForm, ...] = ()
    extra: tuple[Any, ...] = ()
    parameter: bool = False


def _form(*values: Any) -> TensorForm:
    return TensorForm(*values)


def _torch_attribute(name: str) -> Any:
    return getattr(torch, name)


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self._storages: dict[int, StorageForm] = {}

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            form = self._tensor(value)
            return _form, tuple(getattr(form, name) for name in TensorForm.__slots__)
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return _torch_attribute, (str(value).removeprefix("torch."),)
        if isinstance(value, types.FunctionType) and not _importable(value):
            raise Unencodable(f"the function {value.__qualname__}")
        return NotImplemented

    def _tensor(self, tensor: torch.Tensor) -> TensorForm:
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            raise Unencodable(f"a tensor of type {type(tensor).__name__}")
        plain = tensor.detach()
        if plain.is_nested:
            parts = self._all(*plain.unbind())
            return TensorForm(name_of(plain.dtype), (), tensor.requires_grad, "nested", parts=parts)
        head = (name_of(plain.dtype), tuple(plain.shape), tensor.requires_grad)
        parameter = isinstance(tensor, torch.nn.Parameter)
        if plain.layout == torch.sparse_coo:
            parts = self._all(plain._indices(), plain._values())
            return TensorForm(*head, "sparse_coo", parts=parts, extra=(plain.is_coalesced(),))
        if plain.layout in COMPRESSED:
            indices = (getattr(plain, name)() for name in COMPRESSED[plain.layout])
            return TensorForm(*head, name_of(plain.layout), parts=self._all(*indices, plain.values()))
        if plain.layout != torch.strided:
            raise Unencodable(f"a tensor of layout {plain.layout}")
        if plain.is_quantized:
            return self._quantized(plain, head)
        physical = physical_of(plain)
        return TensorForm(
            *head,
            storage=self._storage(physical),
            stride=tuple(physical.stride()),
            offset=int(physical.storage_offset()),
            conj=plain.is_conj(),
            neg=plain.is_neg(),
            parameter=parameter,
        )

    def _quantized(self, tensor: torch.Tensor, head: tuple[str, tuple[int, ...], bool]) -> TensorForm:
        if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            extra: tuple[Any, ...] = (tensor.q_scale(), tensor.q_zero_point())
            return TensorForm(*head, "quantized", parts=self._all(tensor.int_repr()), extra=extra)
        parts = self._all(tensor.int_repr(), tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points())
        return TensorForm(*head, "quantized", parts=parts, extra=(tensor.q_per_channel_axis(),))

    def _all(self, *tensors: torch.Tensor) -> tuple[TensorForm, ...]:
        return tuple(self._tensor(tensor) for tensor in tensors)

    def _storage(self, tensor: torch.Tensor) -> StorageForm:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._storages:
            size = storage.nbytes()
            self._storages[key] = StorageForm(ctypes.string_at(storage.data_ptr(), size) if size else b"")
        return self._storages[key]


def physical_of(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its lazy conjugation and negation bits off, over the same storage."""
    if tensor.is_conj():
        tensor = tensor.conj()
    return torch._neg_view(tensor) if tensor.is_neg() else tensor


def name_of(value: torch.dtype | torch.layout) -> str:
    """``float32`` for ``torch.float32``, ``sparse_csr`` for ``torch.sparse_csr``."""
    return str(value).removeprefix("torch.")


def values_of(form: TensorForm) -> bytes | None:
    """The contiguous bytes that a plain strided tensor holds; None where that takes more than a look."""
    if form.storage is None or form.conj or form.neg:
        return None
    expected = 1
    for length, stride in zip(reversed(form.shape), reversed(form.stride), strict=True):
        if length != 1 and stride != expected:
            return None
        expected *= length
    start = form.offset * (itemsize := getattr(torch, form.dtype).itemsize)
    return form.storage.data[start : start + expected * itemsize]


def encode(value: Any) -> bytes:
    """Turn arguments with CPU tensors into bytes.

    Raises:
        Unencodable: when something among them cannot travel.
    """
    stream = io.BytesIO()
    try:
        _Pickler(stream).dump(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise Unencodable(str(error)) from error
    return stream.getvalue()


def decode(data: bytes) -> Any:
    """The arguments back, with a `TensorForm` where each tensor was."""
    return pickle.loads(data)


def digest(data: bytes) -> str:
    """A short digest of an encoded sample."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def map_structure(value: Any, leaf_type: type, function: Callable[[Any], Any]) -> Any:
    """Apply ``function`` to each ``leaf_type`` in nested tuples, lists and dicts."""
    if isinstance(value, leaf_type):
        return function(value)
    if isinstance(value, tuple):
        items = [map_structure(item, leaf_type, function) for item in value]
        if type(value) is tuple:
            return tuple(items)
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, list):
        return [map_structure(item, leaf_type, function) for item in value]
    if isinstance(value, dict):
        return {key: map_structure(item, leaf_type, function) for key, item in value.items()}
    return value


def leaves(value: Any, leaf_type: type) -> list[Any]:
    """Every ``leaf_type`` in nested tuples, lists and dicts, in order."""
    if isinstance(value, leaf_type):
        return [value]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item, leaf_type)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item, leaf_type)]
    return []


@dataclass(slots=True)
class Placer:
    """Puts forms on a device; tensors that share a storage share one there."""

    device: torch.device
    _bases: dict[tuple[int, str], torch.Tensor] = field(default_factory=dict)

    def place(self, value: Any, keep_on_host: tuple[str, ...] = ()) -> Any:
        """The arguments with tensors on the device; names of the CPU among them become the device's.

        Args:
            value: what `decode` gave.
            keep_on_host: keys of dicts (names of arguments) whose tensors stay on the CPU.
        """
        if isinstance(value, TensorForm):
            return self.tensor(value)
        if isinstance(value, dict):
            host = Placer(torch.device("cpu"))
            return {
                key: host.place(item) if key in keep_on_host else self.place(item, keep_on_host)
                for key, item in value.items()
            }
        if isinstance(value, tuple):
            items = [self.place(item, keep_on_host) for item in value]
            if type(value) is tuple:
                return tuple(items)
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, list):
            return [self.place(item, keep_on_host) for item in value]
        if isinstance(value, str):
            return str(self.device) if value == "cpu" else value
        if isinstance(value, torch.device):
            return self.device if value.type == "cpu" else value
        return value

    def tensor(self, form: TensorForm) -> torch.Tensor:
        """One tensor on the device."""
        # Grad mode stays on: a view made without it could not be written to in place later.
        tensor = self._strided(form) if form.storage is not None else self._composed(form)
        if form.parameter:
            return torch.nn.Parameter(tensor, requires_grad=form.requires_grad)
        return tensor.requires_grad_() if form.requires_grad else tensor

    def _strided(self, form: TensorForm) -> torch.Tensor:
        assert form.storage is not None
        dtype = getattr(torch, form.dtype)
        key = (id(form.storage), form.dtype)
        data = form.storage.data
        if key not in self._bases and form.offset == 0 and _fills(form, len(data), dtype.itemsize):
            # The usual case: the tensor is its whole storage, so it is made as a user makes one.
            tensor = torch.empty_strided(form.shape, form.stride, dtype=dtype, device=self.device)
            if data:
                tensor.copy_(_from_bytes(data, dtype).as_strided(form.shape, form.stride))
            self._bases[key] = tensor.as_strided((len(data) // dtype.itemsize,), (1,))
        else:
            if key not in self._bases:
                self._bases[key] = self._base(form.storage, dtype)
            tensor = self._bases[key].as_strided(form.shape, form.stride, form.offset)
        if form.neg:
            tensor = torch._neg_view(tensor)
        return tensor.conj() if form.conj else tensor

    def _base(self, storage: StorageForm, dtype: torch.dtype) -> torch.Tensor:
        for (other, _), base in self._bases.items():
            if other == id(storage) and base.numel() * base.element_size() == len(storage.data):
                return base.view(dtype)  # two dtypes over one storage, as view_as_real makes them
        return _from_bytes(storage.data, dtype).to(self.device)

    def _composed(self, form: TensorForm) -> torch.Tensor:
        parts = [self.tensor(part) for part in form.parts]
        if form.layout == "nested":
            return torch.nested.nested_tensor(parts)
        if form.layout == "sparse_coo":
            made = torch.sparse_coo_tensor(parts[0], parts[1], form.shape, check_invariants=False)
            return made._coalesced_(form.extra[0])
        if form.layout == "quantized":
            if len(parts) == 1:
                return torch._make_per_tensor_quantized_tensor(parts[0], form.extra[0], form.extra[1])
            return torch._make_per_channel_quantized_tensor(parts[0], parts[1], parts[2], form.extra[0])
        layout = getattr(torch, form.layout)
        compressed, plain, values = parts
        return torch.sparse_compressed_tensor(
            compressed, plain, values, form.shape, layout=layout, check_invariants=False
        )


def _fills(form: TensorForm, size: int, itemsize: int) -> bool:
    """Whether a strided tensor without gaps or overlaps is the whole of its storage."""
    if math.prod(form.shape) * itemsize != size:
        return False
    if size == 0:
        return True
    expected = 1
    for stride, length in sorted((s, n) for s, n in zip(form.stride, form.shape, strict=True) if n != 1):
        if stride != expected:
            return False
        expected *= length
    return True


def _from_bytes(data: bytes, dtype: torch.dtype) -> torch.Tensor:
    """A CPU tensor of one dimension over a copy of ``data``."""
    count = len(data) // dtype.itemsize
    if count == 0:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype, count=count)


def _importable(function: types.FunctionType) -> bool:
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is function
