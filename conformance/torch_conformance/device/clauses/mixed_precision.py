"""Mixed precision: what PyTorch's own modules do on the device when autocast is on or losses are scaled."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .. import expect
from ..clause import clause
from ..failure import Refused
from ..target import Device

SCALE = 2.0**16
"""The initial scale of a `torch.amp.GradScaler`."""


@clause(
    "mixed_precision/grad-scaler/default-device",
    words="A GradScaler made without arguments is enabled and scales losses on the current accelerator.",
    source="https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling",
    fault="copy_drops_last_element",
    needs=("autocast",),
)
def grad_scaler_default_device(device: Device) -> None:
    _check_default_device(torch.amp.GradScaler, device, "torch.amp.GradScaler()")


@clause(
    "mixed_precision/sharded-grad-scaler/default-device",
    words="A ShardedGradScaler made without arguments is enabled and scales losses on the current accelerator.",
    source="torch/distributed/fsdp/sharded_grad_scaler.py, ShardedGradScaler",
    fault="copy_drops_last_element",
    needs=("autocast",),
)
def sharded_grad_scaler_default_device(device: Device) -> None:
    if not torch.distributed.is_available():
        raise Refused("this torch is built without torch.distributed")
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    _check_default_device(ShardedGradScaler, device, "ShardedGradScaler()")


def _check_default_device(scaler_type: type[torch.amp.GradScaler], device: Device, where: str) -> None:
    if not device.is_accelerator:
        raise Refused(f"{device.type} is not what torch.accelerator speaks of here")
    scaler = scaler_type()
    expect.true(scaler.is_enabled(), scaler.is_enabled(), "True: it must not disable itself", f"{where}.is_enabled()")
    loss = torch.tensor([0.25, 0.5]).to(device.first)
    scaled = scaler.scale(loss)
    expect.on_device(scaled, device.first, f"{where}.scale(loss)")
    expect.values(scaled, torch.tensor([0.25, 0.5]) * SCALE, f"{where}.scale(loss)")


@clause(
    "mixed_precision/encoder-layer/autocast-decides",
    words="Under autocast for its device, TransformerEncoderLayer computes what it computes without its fast path.",
    source="torch/nn/modules/transformer.py, TransformerEncoderLayer.forward",
    fault="copy_drops_last_element",
    needs=("autocast",),
)
def encoder_layer_autocast_decides(device: Device) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval().to(device.first)
    source = torch.randn(2, 3, 16).to(device.first)
    _check_same_without_fast_path(lambda: layer(source), device, "TransformerEncoderLayer(16, 2, 32)(source)")


@clause(
    "mixed_precision/encoder/autocast-decides",
    words="Under autocast for its device, TransformerEncoder with a padding mask does not switch to nested tensors.",
    source="torch/nn/modules/transformer.py, TransformerEncoder.forward",
    fault="copy_drops_last_element",
    needs=("autocast",),
)
def encoder_autocast_decides(device: Device) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2).eval().to(device.first)
    source = torch.randn(2, 3, 16).to(device.first)
    padding = torch.tensor([[False, False, False], [False, False, True]]).to(device.first)
    _check_same_without_fast_path(
        lambda: encoder(source, src_key_padding_mask=padding), device, "TransformerEncoder(layer, 2)(source, padding)"
    )


@clause(
    "mixed_precision/attention/autocast-decides",
    words="Under autocast for its device, MultiheadAttention computes what it computes without its fast path.",
    source="torch/nn/modules/activation.py, MultiheadAttention.forward",
    fault="copy_drops_last_element",
    needs=("autocast",),
)
def attention_autocast_decides(device: Device) -> None:
    attention = torch.nn.MultiheadAttention(16, 2, batch_first=True).eval().to(device.first)
    source = torch.randn(2, 3, 16).to(device.first)
    _check_same_without_fast_path(
        lambda: attention(source, source, source, need_weights=False)[0], device, "MultiheadAttention(16, 2)(source)"
    )


def _check_same_without_fast_path(call: Callable[[], torch.Tensor], device: Device, where: str) -> None:
    """The fast path computes in the dtype of the weights, so under autocast its values tell it from the other path."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    with torch.inference_mode():
        try:
            torch.backends.mha.set_fastpath_enabled(False)
            plain = call().to("cpu")
            with torch.autocast(device.type):
                wanted = call().to("cpu")
        finally:
            torch.backends.mha.set_fastpath_enabled(enabled)
        with torch.autocast(device.type):
            got = call().to("cpu")
    close = wanted.float().allclose(plain, rtol=0.05, atol=0.05)
    expect.true(
        close, (wanted.float() - plain).abs().max().item(), "at most about 0.05", f"{where}: effect of autocast"
    )
    changed = wanted.dtype != plain.dtype or not torch.equal(wanted, plain)
    expect.true(changed, "the very bits that it gives without autocast", "lower precision", f"{where} under autocast")
    expect.equal(got.dtype, wanted.dtype, f"{where} under autocast: dtype")
    expect.true(torch.equal(got, wanted), "other values", "the values without the fast path", f"{where} under autocast")
