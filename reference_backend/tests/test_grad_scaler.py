"""GradScaler("neuron"): scales, skips steps that overflowed, and goes on."""

from types import ModuleType

import pytest
import torch


def _step(scaler: torch.amp.GradScaler, weight: torch.Tensor, optimizer: torch.optim.Optimizer, factor: float) -> None:
    optimizer.zero_grad()
    scaler.scale((weight * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


@pytest.fixture
def weight() -> torch.Tensor:
    return torch.ones(4, device="neuron", requires_grad=True)


def test_a_step_uses_the_gradient_without_its_scale(weight: torch.Tensor) -> None:
    scaler = torch.amp.GradScaler("neuron", init_scale=1024.0)
    _step(scaler, weight, torch.optim.SGD([weight], lr=0.5), 2.0)
    assert weight.tolist() == [0.0] * 4
    assert scaler.get_scale() == 1024.0


@pytest.mark.parametrize("factor", [float("inf"), float("nan")])
def test_a_step_that_overflowed_is_skipped_and_the_scale_halved(weight: torch.Tensor, factor: float) -> None:
    scaler = torch.amp.GradScaler("neuron", init_scale=1024.0)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    _step(scaler, weight, optimizer, factor)
    assert weight.tolist() == [1.0] * 4
    assert scaler.get_scale() == 512.0
    _step(scaler, weight, optimizer, 2.0)
    assert weight.tolist() == [0.0] * 4


def test_the_scale_grows_after_enough_good_steps(weight: torch.Tensor) -> None:
    scaler = torch.amp.GradScaler("neuron", init_scale=2.0, growth_interval=3)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    for _ in range(3):
        assert scaler.get_scale() == 2.0
        _step(scaler, weight, optimizer, 1.0)
    assert scaler.get_scale() == 4.0


def test_the_scale_lives_on_the_device(weight: torch.Tensor) -> None:
    scaler = torch.amp.GradScaler("neuron")
    assert scaler.scale(weight.sum()).device.type == "neuron"
    assert scaler._scale is not None and scaler._scale.device.type == "neuron"


def test_unscaling_lets_gradients_be_clipped(weight: torch.Tensor) -> None:
    scaler = torch.amp.GradScaler("neuron", init_scale=4096.0)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler.scale((weight * 100).sum()).backward()
    scaler.unscale_(optimizer)
    assert torch.nn.utils.clip_grad_norm_([weight], 2.0).item() == pytest.approx(200.0)
    scaler.step(optimizer)
    assert weight.tolist() == pytest.approx([0.0] * 4)


def test_gradients_on_both_devices_are_unscaled_and_one_infinity_skips_the_step() -> None:
    weights = [torch.ones(2, device=f"neuron:{index}", requires_grad=True) for index in range(2)]
    scaler = torch.amp.GradScaler("neuron", init_scale=8.0)
    optimizer = torch.optim.SGD(weights, lr=1.0)
    loss = weights[0].sum() + (weights[1] * float("inf")).sum().to("neuron:0")
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert [weight.tolist() for weight in weights] == [[1.0, 1.0], [1.0, 1.0]]
    assert scaler.get_scale() == 4.0


def test_a_state_is_saved_and_loaded(weight: torch.Tensor) -> None:
    scaler = torch.amp.GradScaler("neuron", init_scale=16.0)
    _step(scaler, weight, torch.optim.SGD([weight], lr=0.0), float("inf"))
    other = torch.amp.GradScaler("neuron")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8.0


def test_a_fused_optimizer_takes_the_scale_itself(weight: torch.Tensor) -> None:
    scaler = torch.amp.GradScaler("neuron", init_scale=1024.0)
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
    _step(scaler, weight, optimizer, float("inf"))
    assert weight.tolist() == [1.0] * 4
    _step(scaler, weight, optimizer, 1.0)
    assert all(value < 1.0 for value in weight.tolist())


def test_the_scaler_of_the_module_is_that_of_torch(neuron: ModuleType) -> None:
    assert neuron.amp.GradScaler(init_scale=2.0).get_scale() == 2.0
