"""Samples as bytes: every layout comes back with its values, strides, offsets and sharing."""

from __future__ import annotations

import pytest
import torch
from torch_conformance.device import forms

CPU = torch.device("cpu")


def back(value: object) -> object:
    return forms.Placer(CPU).place(forms.decode(forms.encode(value)))


STRIDED = {
    "contiguous": torch.arange(6.0).reshape(2, 3),
    "transposed": torch.arange(6.0).reshape(2, 3).t(),
    "sliced": torch.arange(20.0)[3:11:2],
    "expanded": torch.arange(3.0).expand(4, 3),
    "empty": torch.empty(0, 3),
    "scalar": torch.tensor(5),
    "bool": torch.tensor([True, False]),
    "half": torch.tensor([1.5, float("nan")], dtype=torch.float16),
    "float8": torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn),
    "unsigned": torch.tensor([1, 65535], dtype=torch.uint16),
    "complex": torch.tensor([1 + 2j]),
    "channels last": torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
}


@pytest.mark.parametrize("name", STRIDED)
def test_a_strided_tensor_comes_back_with_its_strides_offset_and_values(name: str) -> None:
    sent = STRIDED[name]
    got = back(sent)
    assert isinstance(got, torch.Tensor)
    assert (got.shape, got.stride(), got.dtype) == (sent.shape, sent.stride(), sent.dtype)
    assert forms.encode(got.contiguous()) == forms.encode(sent.contiguous())


def test_a_view_keeps_its_offset() -> None:
    assert back(torch.arange(10.0)[4:]).storage_offset() == 4  # type: ignore[attr-defined]


def test_tensors_that_share_a_storage_share_one_again() -> None:
    base = torch.arange(10.0)
    one, other = back((base[2:5], base))  # type: ignore[misc]
    other.zero_()
    assert one.tolist() == [0.0, 0.0, 0.0]


def test_lazy_conjugation_and_negation_stay_lazy() -> None:
    got = back((torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j]).conj().imag))
    assert [item.is_conj() for item in got] == [True, False]  # type: ignore[attr-defined]
    assert got[1].is_neg()  # type: ignore[index]
    assert [item.tolist() for item in got] == [[1 - 2j], [-2.0]]  # type: ignore[attr-defined]


def test_requires_grad_makes_a_leaf() -> None:
    got = back(torch.ones(2, requires_grad=True))
    assert got.requires_grad  # type: ignore[attr-defined]
    assert got.is_leaf  # type: ignore[attr-defined]


def test_a_parameter_stays_one() -> None:
    assert isinstance(back(torch.nn.Parameter(torch.ones(2))), torch.nn.Parameter)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr])
def test_sparse_tensors_come_back(layout: torch.layout) -> None:
    dense = torch.eye(4) * torch.arange(4.0)
    sent = dense.to_sparse(layout=layout, blocksize=(2, 2) if layout == torch.sparse_bsr else None)
    got = back(sent)
    assert got.layout == layout  # type: ignore[attr-defined]
    assert torch.equal(got.to_dense(), dense)  # type: ignore[attr-defined]


def test_an_uncoalesced_tensor_stays_uncoalesced() -> None:
    sent = torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.tensor([1.0, 2.0]), (2,))
    assert not back(sent).is_coalesced()  # type: ignore[attr-defined]


def test_quantized_tensors_come_back() -> None:
    sent = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 3, torch.quint8)
    assert torch.equal(back(sent).dequantize(), sent.dequantize())  # type: ignore[attr-defined]


def test_nested_tensors_come_back() -> None:
    sent = torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)])
    assert [part.tolist() for part in back(sent).unbind()] == [[1, 1], [0, 0, 0]]  # type: ignore[attr-defined]


def test_plain_arguments_come_back_as_they_were() -> None:
    sent = (1, 2.5, None, "mean", slice(1, None), torch.float16, torch.channels_last, [3, (4,)], {"dim": -1})
    assert back(sent) == sent


def test_a_lambda_is_said_to_be_unencodable() -> None:
    with pytest.raises(forms.Unencodable):
        forms.encode(lambda x: x)


def test_the_digest_follows_a_single_bit() -> None:
    one, other = torch.zeros(100), torch.zeros(100)
    other[57] = -0.0
    assert forms.digest(forms.encode(one)) != forms.digest(forms.encode(other))
    assert forms.digest(forms.encode(one)) == forms.digest(forms.encode(torch.zeros(100)))


def test_the_name_of_the_cpu_becomes_the_device() -> None:
    placed = forms.Placer(torch.device("meta")).place(("cpu", {"device": torch.device("cpu"), "mode": "cpu-like"}))
    assert placed == ("meta", {"device": torch.device("meta"), "mode": "cpu-like"})
