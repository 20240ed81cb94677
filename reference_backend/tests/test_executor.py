"""Operators on the device: what the executor keeps as on the CPU, and the traps it was built around."""

import threading
import warnings

import pytest
import torch
from neuron_ref import _C, faults
from torch import nn
from torch.nn import functional


def on(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to("neuron")


def test_results_are_bitwise_those_of_the_cpu() -> None:
    left, right = torch.randn(33, 17), torch.randn(17, 9)
    assert torch.equal((on(left) @ on(right)).cpu(), left @ right)
    assert torch.equal(on(left).softmax(1).cpu(), left.softmax(1))


def test_fresh_results_lie_in_device_memory_without_a_copy() -> None:
    before = torch.accelerator.memory_allocated()
    result = on(torch.ones(1 << 20)) + 1
    assert result.device.type == "neuron"
    assert torch.accelerator.memory_allocated() - before == result.nbytes


def test_an_in_place_operator_returns_its_own_tensor() -> None:
    tensor = on(torch.zeros(3))
    assert tensor.add_(1) is tensor
    assert tensor.cpu().tolist() == [1, 1, 1]


def test_an_in_place_operator_raises_the_version_once() -> None:
    tensor = on(torch.zeros(3))
    version = tensor._version
    tensor.add_(1)
    assert tensor._version == version + 1


def test_views_share_memory_version_and_base() -> None:
    base = on(torch.zeros(4, 4))
    view = base[1:, ::2]
    view.fill_(1)
    assert base.cpu().sum() == 6
    assert view._base is base
    assert view._version == base._version == 1
    assert base.t().data_ptr() == base.data_ptr()


def test_the_same_tensor_twice_in_one_call_is_one_tensor() -> None:
    tensor = on(torch.full((3,), 3.0))
    assert torch.mul(tensor, tensor, out=tensor) is tensor
    assert tensor.cpu().tolist() == [9, 9, 9]


def test_out_is_resized_and_keeps_its_identity() -> None:
    out = on(torch.empty(0))
    result = torch.add(on(torch.ones(100, 100)), 1, out=out)
    assert result is out
    assert out.shape == (100, 100)
    assert out.untyped_storage().nbytes() == 40000
    assert out.cpu().eq(2).all()


def test_out_of_the_wrong_shape_is_resized_with_a_warning() -> None:
    out = on(torch.empty(2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.add(on(torch.ones(5)), 1, out=out)
    assert any("was resized" in str(warning.message) for warning in caught)
    assert out.cpu().tolist() == [2] * 5


def test_a_resized_out_is_seen_by_all_views_of_its_storage() -> None:
    out = on(torch.zeros(2))
    other = out.view(2)
    out.resize_(0)
    torch.add(on(torch.ones(1000)), 1, out=out)
    assert out.data_ptr() == other.data_ptr()
    assert other.cpu().tolist() == [2, 2]


def test_resize_keeps_the_contents() -> None:
    tensor = on(torch.arange(4.0))
    tensor.resize_(1000)
    assert tensor[:4].cpu().tolist() == [0, 1, 2, 3]


def test_a_storage_can_be_resized_and_set() -> None:
    tensor = on(torch.arange(4.0))
    tensor.untyped_storage().resize_(64)
    view = on(torch.empty(0)).set_(tensor.untyped_storage(), 1, (3,), (1,))
    assert view.cpu().tolist() == [1, 2, 3]
    tensor.untyped_storage().resize_(0)
    assert tensor.untyped_storage().nbytes() == 0


def test_clone_of_a_storage_copies_device_memory() -> None:
    storage = on(torch.arange(4.0)).untyped_storage()
    copy = storage.clone()
    assert copy.data_ptr() != storage.data_ptr()
    assert on(torch.empty(0)).set_(copy).cpu().tolist() == [0, 1, 2, 3]


def test_convolution_through_onednn_frees_what_it_took_from_the_device() -> None:
    image, weight = on(torch.randn(2, 3, 32, 32)), on(torch.randn(8, 3, 3, 3))
    functional.conv2d(image, weight)
    before = torch.accelerator.memory_allocated()
    for _ in range(5):
        functional.conv2d(image, weight)
    assert torch.accelerator.memory_allocated() == before


def test_zero_tensors_of_autograd_do_not_crash_sgn_and_angle() -> None:
    tensor = on(torch.randn(3, dtype=torch.complex64)).requires_grad_()
    (tensor.sgn().abs().sum() + tensor.angle().sum()).backward()
    expected = tensor.detach().cpu().requires_grad_()
    (expected.sgn().abs().sum() + expected.angle().sum()).backward()
    assert torch.equal(tensor.grad.cpu(), expected.grad)


def test_sparse_mm_reduce_sees_requires_grad() -> None:
    sparse = torch.eye(3).to_sparse_csr()
    left = sparse.to("neuron").requires_grad_()
    right = on(torch.randn(3, 2)).requires_grad_()
    torch.sparse.mm(left, right, "amax").sum().backward()
    assert right.grad.cpu().eq(1).all()


def test_module_to_keeps_its_parameters() -> None:
    module = nn.Linear(3, 3)
    weight = module.weight
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    module.to("neuron")
    assert module.weight is weight
    module(on(torch.ones(1, 3))).sum().backward()
    before = module.weight.detach().clone()
    optimizer.step()
    assert not torch.equal(before, module.weight)


def test_saturating_weights_to_fp16_works_on_the_device() -> None:
    weight = torch.tensor([[1.0, 1e9, -1e9]])
    assert torch.equal(torch._saturate_weight_to_fp16(on(weight)).cpu(), torch._saturate_weight_to_fp16(weight))


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_a_cpu_tensor_beside_a_device_tensor_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.*neuron:0 and cpu"):
        on(torch.ones(shape)) + torch.ones(shape)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.add(on(torch.ones(shape)), 1, out=torch.ones(shape))


def test_tensors_of_two_devices_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"same device.*neuron:0 and neuron:1"):
        torch.ones(2, device="neuron:0") + torch.ones(2, device="neuron:1")


def test_numbers_on_the_cpu_are_taken() -> None:
    assert (on(torch.ones(2)) * torch.tensor(3.0)).cpu().tolist() == [3, 3]


def test_indices_may_lie_on_the_cpu() -> None:
    assert on(torch.arange(4.0))[torch.tensor([3, 0])].cpu().tolist() == [3, 0]


def test_copies_between_devices_convert_dtype_and_stride() -> None:
    source = torch.arange(6, device="neuron:0").reshape(2, 3).t()
    target = torch.zeros(3, 2, device="neuron:1")
    target.copy_(source)
    assert torch.equal(target.cpu(), source.cpu().float())


def test_negative_and_conjugate_bits_survive() -> None:
    tensor = on(torch.tensor([1 + 2j, 3 - 4j]))
    assert tensor.conj().is_conj()
    assert torch.equal(tensor.conj().cpu(), tensor.cpu().conj())
    assert torch.equal(tensor.conj().imag.cpu(), -tensor.cpu().imag)
    resolved = tensor.conj().resolve_conj()
    assert torch.equal(torch.view_as_real(resolved).cpu(), torch.view_as_real(tensor.cpu().conj().resolve_conj()))


def test_a_lazy_clone_is_not_written_through() -> None:
    tensor = on(torch.zeros(3))
    clone = torch._lazy_clone(tensor)
    clone.add_(1)
    assert tensor.cpu().tolist() == [0, 0, 0]
    assert clone.cpu().tolist() == [1, 1, 1]


def test_sparse_nested_and_quantized_tensors_work() -> None:
    coo = torch.eye(3).to_sparse().to("neuron")
    assert coo.device.type == coo.coalesce().values().device.type == "neuron"
    assert torch.equal(torch.sparse.mm(coo, on(torch.eye(3))).cpu(), torch.eye(3))
    coo.mul_(2)
    assert torch.equal(coo.to_dense().cpu(), 2 * torch.eye(3))
    csr = torch.eye(3).to_sparse_csr().to("neuron")
    assert torch.equal(csr.to_dense().cpu(), torch.eye(3))
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).to("neuron")
    assert (nested * 2).to_padded_tensor(0.0).cpu().sum() == 10
    quantized = torch.quantize_per_tensor(on(torch.tensor([0.1, 0.2])), 0.1, 0, torch.qint8)
    assert torch.allclose(quantized.dequantize().cpu(), torch.tensor([0.1, 0.2]))


def test_the_lengths_of_a_packed_sequence_stay_on_the_host() -> None:
    packed = nn.utils.rnn.pack_padded_sequence(on(torch.randn(4, 2, 3)), [4, 2])
    assert packed.batch_sizes.device.type == "cpu"
    assert packed.data.device.type == "neuron"


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_modules_match_the_cpu_forward_and_backward(kind: type[nn.RNNBase]) -> None:
    torch.manual_seed(0)
    module = kind(4, 5, num_layers=2, bidirectional=True)
    data = torch.randn(3, 2, 4)
    expected, _ = module(data)
    expected.sum().backward()
    gradients = [parameter.grad for parameter in module.parameters()]
    module.zero_grad(set_to_none=True)
    module.to("neuron")
    result, _ = module(on(data))
    result.sum().backward()
    torch.testing.assert_close(result.cpu(), expected)
    for parameter, gradient in zip(module.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad.cpu(), gradient)


def test_attention_takes_the_fused_path_with_the_results_of_the_cpu() -> None:
    query = torch.randn(2, 4, 6, 8, requires_grad=True)
    device_query = on(query.detach()).requires_grad_()
    expected = functional.scaled_dot_product_attention(query, query, query, is_causal=True)
    result = functional.scaled_dot_product_attention(device_query, device_query, device_query, is_causal=True)
    assert "FusedAttentionOverrideable" in type(result.grad_fn).__name__
    expected.sum().backward()
    result.sum().backward()
    assert torch.equal(result.cpu(), expected)
    assert torch.equal(device_query.grad.cpu(), query.grad)


def test_random_operators_without_a_generator_argument_leave_the_cpu_generator_alone() -> None:
    before = torch.get_rng_state()
    functional.dropout(on(torch.ones(100)), 0.5)
    torch.randn(10, device="neuron")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_cpu_generator_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Expected a 'neuron' device type for generator but found 'cpu'"):
        torch.randn(3, device="neuron", generator=torch.Generator())


def test_an_error_of_a_kernel_leaves_the_device_usable() -> None:
    tensor = on(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes"):
        tensor @ tensor
    assert (tensor @ tensor.t()).cpu().eq(3).all()
    assert torch.ones(3).add(1).sum() == 6


def test_two_threads_may_use_one_tensor_at_once() -> None:
    tensor = on(torch.ones(64, 64))
    wrong: list[float] = []

    def multiply() -> None:
        for _ in range(200):
            total = float((tensor @ tensor).sum())
            if total != 64**3:
                wrong.append(total)

    threads = [threading.Thread(target=multiply) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_inference_mode_gives_inference_tensors() -> None:
    with torch.inference_mode():
        result = on(torch.ones(2)) + 1
    assert result.is_inference()
    assert not (on(torch.ones(2)) + 1).is_inference()


def test_executed_operators_are_counted_while_counting_is_on() -> None:
    _C.executed_ops(True)
    _C.count_ops(True)
    tensor = on(torch.ones(2))
    tensor + tensor
    _C.count_ops(False)
    tensor * tensor
    counts = _C.executed_ops(True)
    assert counts["aten::add.Tensor"] == 1
    assert "aten::mul.Tensor" not in counts
    assert _C.executed_ops(False) == {}


def test_operators_that_no_cpu_kernel_has_are_refused() -> None:
    with pytest.raises(NotImplementedError):
        torch.batch_norm_stats(on(torch.ones(2, 3)), 1e-5)


@pytest.mark.parametrize(
    ("name", "expression", "healthy"),
    [
        ("add_off_by_ulp", "(on(torch.ones(3)) + 1).cpu()[0].item()", 2.0),
        ("sum_wrong_for_int64", "on(torch.ones(3, dtype=torch.int64)).sum().item()", 3),
        ("wrong_stride_output", "(on(torch.ones(2, 3)) + 1).stride()", (3, 1)),
        ("copy_drops_last_element", "on(torch.ones(3)).cpu()[-1].item()", 1.0),
        ("copy_ignores_storage_offset", "on(torch.arange(3.0))[1:].cpu()[0].item()", 1.0),
        ("resize_loses_data", "on(torch.arange(1.0, 4.0)).resize_(1000)[2].item()", 3.0),
        ("pin_does_nothing", "torch.ones(2).pin_memory().is_pinned()", True),
        ("inplace_no_version_bump", "on(torch.ones(3)).add_(1).add_(1)._version - on(torch.ones(3))._version", 2),
        ("view_copies", "(lambda t: t.view(4).data_ptr() == t.data_ptr())(on(torch.ones(2, 2)))", True),
        ("copy_rounds_to_bfloat16", "on(torch.tensor([1.001])).cpu().item() == torch.tensor(1.001).item()", True),
    ],
)
def test_a_fault_changes_what_it_says(name: str, expression: str, healthy: object) -> None:
    assert eval(expression) == healthy
    faults.switch([name])
    assert eval(expression) != healthy
