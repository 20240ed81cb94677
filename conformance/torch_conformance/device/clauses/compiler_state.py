"""Compiler state: what tracing and compiling must leave alone, or set, on the device."""

from __future__ import annotations

import torch

from .. import expect
from ..clause import clause
from ..target import Device


@clause(
    "compiler_state/random/kept-while-tracing",
    words="Random numbers that are drawn on the device while torch.compile traces do not advance its state.",
    source="torch/_dynamo/utils.py, preserve_rng_state",
    fault="rng_state_not_restored",
    needs=("generator",),
    cost=2.0,
)
def random_state_kept_while_tracing(device: Device) -> None:
    from torch._dynamo.utils import preserve_rng_state

    torch.manual_seed(0)
    before = device.get_rng_state()
    with preserve_rng_state():
        torch.rand(4, device=device.first)
        drawn = device.get_rng_state()
    _check_restored(device, before, drawn, "state of the device after preserve_rng_state()")


@clause(
    "compiler_state/random/kept-by-a-checkpoint",
    words="Restoring the parameters of a graph module restores the random state of the device as well.",
    source="torch/_dynamo/utils.py, checkpoint_params",
    fault="rng_state_not_restored",
    needs=("generator",),
    cost=2.0,
)
def random_state_kept_by_a_checkpoint(device: Device) -> None:
    from torch._dynamo.utils import checkpoint_params

    graph = torch.fx.symbolic_trace(torch.nn.Linear(2, 2))
    torch.manual_seed(0)
    before = device.get_rng_state()
    restore = checkpoint_params(graph)
    torch.rand(4, device=device.first)
    drawn = device.get_rng_state()
    restore()
    _check_restored(device, before, drawn, "state of the device after restoring")


def _check_restored(device: Device, before: torch.Tensor, drawn: torch.Tensor, where: str) -> None:
    expect.true(not torch.equal(before, drawn), "no change", "another state", "state after drawing 4 numbers")
    after = device.get_rng_state()
    expect.true(torch.equal(before, after), "another state", "the state from before the draw", where)


@clause(
    "compiler_state/device/current-while-compiling",
    words="Inductor compiles a graph whose tensors lie on one device while that device is the current one.",
    source="torch/_inductor/compile_fx.py, get_cuda_device_context",
    fault="guard_does_not_restore",
    devices=2,
    cost=4.0,
)
def device_current_while_compiling(device: Device) -> None:
    from torch._inductor.compile_fx import get_cuda_device_context
    from torch.fx.experimental.proxy_tensor import make_fx

    outside = torch.accelerator.current_device_index()
    for wanted in (device.second, device.first):
        graph = make_fx(lambda x: x + 1, tracing_mode="fake")(torch.ones(2).to(wanted))
        with get_cuda_device_context(graph):
            inside = torch.accelerator.current_device_index()
        expect.equal(inside, wanted.index, f"current device while a graph on {wanted} is compiled")
        expect.equal(torch.accelerator.current_device_index(), outside, "current device afterwards")


@clause(
    "compiler_state/const-fold/places-folded-values",
    words="Folding a constant number puts it on the device it is told, and by default on the current accelerator.",
    source="torch/fx/experimental/const_fold.py, FoldedGraphModule",
    fault="copy_drops_last_element",
)
def const_fold_places_folded_values(device: Device) -> None:
    expect.equal(_fold(device, str(device.first)).device.type, device.type, "device of a value folded onto the device")
    if device.is_accelerator:
        expect.equal(_fold(device, None).device.type, device.type, "device of a value folded without naming a device")


def _fold(device: Device, told: str | None) -> torch.Tensor:
    """Fold ``weight.size(0)``, a Python number, of a weight on the device."""
    from torch.fx.experimental.const_fold import FoldedGraphModule

    root = torch.nn.Module()
    values = torch.arange(1.0, 7.0).reshape(3, 2)
    root.weight = torch.nn.Parameter(values.to(device.first))
    constant, rest = torch.fx.Graph(), torch.fx.Graph()
    constant.output(constant.call_method("size", (constant.get_attr("weight"), 0)))
    rest.output(rest.placeholder("x"))
    named = {} if told is None else {"device_for_folded_attrs": told}
    module = FoldedGraphModule(root, rest, const_subgraph=constant, fx_const_folded_attrs_name="folded", **named)
    module.run_folding()
    folded = module.folded.detach()  # type: ignore[operator]  # a Parameter, which Module declares as a union
    expect.values(root.weight, values, "the weight whose size was folded")
    expect.values(folded, torch.tensor([3.0]), "the folded value")
    return folded
