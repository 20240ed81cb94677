"""Autocast: each operator has the policy that torch.autocast("cuda") has, which the dispatcher of any build tells."""

import re
from types import ModuleType

import pytest
import torch


def _registered(key: str) -> set[str]:
    """The operators that have an autocast kernel for a dispatch key."""
    return {
        name
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::") and torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
    }


def test_the_operators_with_a_policy_are_those_of_cuda() -> None:
    # cudnn's convolutions exist in the list of CUDA alone.
    expected = {name for name in _registered("AutocastCUDA") if "cudnn" not in name}
    assert len(expected) > 90
    assert _registered("AutocastPrivateUse1") == expected


@pytest.fixture
def half() -> torch.Tensor:
    return torch.rand(4, 4, device="neuron", dtype=torch.float16)


@pytest.fixture
def single() -> torch.Tensor:
    return torch.rand(4, 4, device="neuron")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.mm(x, x),
        lambda x: x @ x,
        lambda x: torch.nn.functional.linear(x, x),
        lambda x: torch.nn.functional.conv2d(x[None, None], x[None, None, :2, :2]),
        lambda x: torch.einsum("ij,jk->ik", x, x),
        lambda x: torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
        lambda x: torch.bmm(x[None], x[None]),
    ],
    ids=["mm", "matmul", "linear", "conv2d", "einsum", "attention", "bmm"],
)
def test_matrix_products_are_computed_in_the_lower_type(single: torch.Tensor, call, dtype: torch.dtype) -> None:
    with torch.autocast("neuron", dtype=dtype):
        assert call(single).dtype == dtype


@pytest.mark.parametrize(
    "call",
    [
        torch.exp,
        torch.log,
        torch.rsqrt,
        lambda x: x.pow(2),
        lambda x: torch.nn.functional.layer_norm(x, (4,)),
        lambda x: torch.nn.functional.mse_loss(x, x),
        lambda x: torch.cdist(x, x),
    ],
    ids=["exp", "log", "rsqrt", "pow", "layer_norm", "mse_loss", "cdist"],
)
def test_functions_that_need_range_are_computed_in_float32(half: torch.Tensor, call) -> None:
    with torch.autocast("neuron"):
        assert call(half).dtype == torch.float32


@pytest.mark.parametrize(
    "call",
    [
        lambda x, **o: torch.softmax(x, 0, **o),
        lambda x, **o: torch.sum(x, **o),
        lambda x, **o: torch.cumsum(x, 0, **o),
        lambda x, **o: torch.prod(x, **o),
    ],
    ids=["softmax", "sum", "cumsum", "prod"],
)
def test_reductions_return_float32_unless_a_type_is_asked_for(half: torch.Tensor, call) -> None:
    with torch.autocast("neuron"):
        assert call(half).dtype == torch.float32
        assert call(half, dtype=torch.float16).dtype == torch.float16


def test_norms_return_float32(half: torch.Tensor) -> None:
    with torch.autocast("neuron"):
        assert torch.norm(half, 2).dtype == torch.float32
        assert torch.norm(half, 2, dim=0).dtype == torch.float32


def test_mixed_arguments_are_promoted_to_the_widest(half: torch.Tensor, single: torch.Tensor) -> None:
    with torch.autocast("neuron"):
        assert torch.addcmul(half, half, single).dtype == torch.float32
        assert torch.addcmul(half, half, half).dtype == torch.float16
        assert torch.dot(half[0], single[0]).dtype == torch.float32


def test_binary_cross_entropy_is_refused_with_what_to_use_instead(single: torch.Tensor) -> None:
    with (
        torch.autocast("neuron"),
        pytest.raises(RuntimeError, match=re.escape("binary_cross_entropy_with_logits")),
    ):
        torch.nn.functional.binary_cross_entropy(single, single)
    assert torch.nn.functional.binary_cross_entropy(single, single).dtype == torch.float32


def test_other_operators_and_types_are_left_alone(half: torch.Tensor, single: torch.Tensor) -> None:
    with torch.autocast("neuron"):
        assert torch.relu(half).dtype == torch.float16
        assert torch.relu(single).dtype == torch.float32
        assert torch.mm(single.double(), single.double()).dtype == torch.float64
        assert (half + single).dtype == torch.float32


def test_tensors_on_the_cpu_are_left_alone() -> None:
    x = torch.rand(4, 4)
    with torch.autocast("neuron"):
        assert torch.mm(x, x).dtype == torch.float32


def test_the_type_is_float16_by_default_as_for_cuda() -> None:
    assert torch.get_autocast_dtype("neuron") == torch.get_autocast_dtype("cuda") == torch.float16


def test_a_type_that_is_not_supported_turns_autocast_off_with_a_warning(single: torch.Tensor) -> None:
    with (
        pytest.warns(UserWarning, match="Disabling autocast"),
        torch.autocast("neuron", dtype=torch.float64),
    ):
        assert torch.mm(single, single).dtype == torch.float32


def test_autocast_ends_with_its_context_and_can_be_off_inside(single: torch.Tensor) -> None:
    with torch.autocast("neuron"):
        with torch.autocast("neuron", enabled=False):
            assert torch.mm(single, single).dtype == torch.float32
        assert torch.mm(single, single).dtype == torch.float16
    assert torch.mm(single, single).dtype == torch.float32


def test_a_weight_is_cast_once_in_a_context(neuron: ModuleType) -> None:
    weight = torch.rand(4, 4, device="neuron", requires_grad=True)
    x = torch.rand(4, 4, device="neuron")
    neuron.clear_op_tracking()
    neuron.set_op_tracking(True)
    with torch.autocast("neuron"):
        torch.mm(x, weight)
        casts = _casts(neuron)
        torch.mm(x, weight)
        assert _casts(neuron) - casts == 1  # x, which needs no gradient, is cast again; weight is not
    neuron.set_op_tracking(False)


def _casts(neuron: ModuleType) -> int:
    return sum(count for name, count in neuron.get_executed_ops().items() if "copy" in name)


def test_gradients_have_the_type_of_their_parameters() -> None:
    layer = torch.nn.Linear(4, 4).to("neuron")
    with torch.autocast("neuron", dtype=torch.bfloat16):
        loss = layer(torch.rand(2, 4, device="neuron")).sum()
    loss.backward()
    assert layer.weight.grad.dtype == torch.float32


def test_autocast_of_the_module_is_that_of_torch(neuron: ModuleType, single: torch.Tensor) -> None:
    with neuron.amp.autocast(dtype=torch.bfloat16):
        assert torch.mm(single, single).dtype == torch.bfloat16


def test_custom_functions_can_cast_their_inputs(neuron: ModuleType, half: torch.Tensor) -> None:
    class Wide(torch.autograd.Function):
        @staticmethod
        @neuron.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx, x):
            return torch.mm(x, x)

        @staticmethod
        @neuron.amp.custom_bwd
        def backward(ctx, grad):
            return grad

    with torch.autocast("neuron"):
        assert Wide.apply(half).dtype == torch.float32
