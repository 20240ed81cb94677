"""The module that touches PyTorch's internals refuses what it does not know."""

from __future__ import annotations

import pytest
import torch
from torch_conformance.device import internals


@pytest.mark.parametrize("version", ["2.12.1+cpu", "1.13.0", "3.0.0"])
def test_an_unknown_torch_is_a_clear_error(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    with pytest.raises(internals.UnknownTorchError, match=version.replace(".", r"\.").replace("+", r"\+")):
        internals.check_version()


@pytest.mark.parametrize("version", ["2.13.0+cpu", "2.14.1", "2.15.0a0+git123"])
def test_known_torches_are_admitted(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    internals.check_version()


def test_random_state_is_put_back() -> None:
    internals.seed_everything(3)
    state = internals.random_state()
    first = torch.rand(3)
    internals.set_random_state(state)
    assert torch.equal(torch.rand(3), first)
