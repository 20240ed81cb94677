"""A backend for testing the suite: the CPU, with four operators laid over by Python ones that ruin their process.

`erfinv` segfaults, `lgamma` never returns, `digamma` leaves silently with exit code 0, and `sinc` is right but floods
stdout. Everything else is PyTorch's own.
"""

import ctypes
import os
import sys
import time

import torch

_library = torch.library.Library("aten", "IMPL")


def activate() -> None:
    """Lay the operators over the CPU's own."""
    for name, replacement in (("erfinv", _segfault), ("lgamma", _hang), ("digamma", _leave), ("sinc", _flood)):
        _library.impl(name, replacement, "CPU")


def _segfault(x: torch.Tensor) -> torch.Tensor:
    ctypes.string_at(16)
    return x


def _hang(x: torch.Tensor) -> torch.Tensor:
    while True:
        time.sleep(0.1)


def _leave(x: torch.Tensor) -> torch.Tensor:
    os._exit(0)


def _flood(x: torch.Tensor) -> torch.Tensor:
    line = "x" * 1023 + "\n"
    for _ in range(4096):
        sys.stdout.write(line)
    sys.stdout.flush()
    scaled = x * torch.pi
    return torch.where(x == 0, torch.ones_like(x), scaled.sin() / scaled)
