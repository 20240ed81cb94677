"""Automatic mixed precision on the device.

The lists of operators are those of CUDA (`csrc/ops/autocast.cpp`), and so are float16 as the default and the two types.
"""

import functools
from typing import Any

import torch
from torch.amp import GradScaler as _GradScaler
from torch.amp import autocast as _autocast
from torch.amp import custom_bwd as _custom_bwd
from torch.amp import custom_fwd as _custom_fwd

custom_fwd = functools.partial(_custom_fwd, device_type="neuron")
custom_bwd = functools.partial(_custom_bwd, device_type="neuron")


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that ``torch.autocast("neuron")`` may compute in."""
    return [torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the device computes in bfloat16; it does, in every model."""
    return True


class autocast(_autocast):
    """``torch.autocast("neuron")``, as ``torch.cuda.amp.autocast`` is for CUDA."""

    def __init__(
        self, enabled: bool = True, dtype: torch.dtype | None = None, cache_enabled: bool | None = None
    ) -> None:
        super().__init__("neuron", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """``torch.amp.GradScaler("neuron")``, as ``torch.cuda.amp.GradScaler`` is for CUDA."""

    def __init__(self, **options: Any) -> None:
        super().__init__("neuron", **options)
