"""The only module that touches `torch.testing._internal`, PyTorch's own operator database.

It says what it knows: torch 2.13 and later 2.x. An older torch, or one whose database lacks what is used here, is a
clear error and not a wrong result.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

OLDEST = (2, 13)
"""Oldest torch whose database is known here."""


class UnknownTorchError(RuntimeError):
    """A torch whose operator database this suite does not know."""


@dataclass(frozen=True, slots=True)
class RawSample:
    """One sample of an OpInfo.

    Attributes:
        input: first argument of the operator.
        args: further positional arguments.
        kwargs: keyword arguments.
        process: what the OpInfo wants applied to the output before gradients are taken; None when it is the identity.
    """

    input: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    process: Any


def torch_release() -> tuple[int, int]:
    """Major and minor number of the imported torch.

    Raises:
        UnknownTorchError: when the version text starts with no such numbers.
    """
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if not found:
        raise UnknownTorchError(f"got torch version {torch.__version__!r}, wanted one that starts with MAJOR.MINOR")
    return int(found[1]), int(found[2])


def check_version() -> None:
    """Refuse a torch that is too old or of another generation.

    Raises:
        UnknownTorchError: naming what was got, what was wanted and what to do.
    """
    release = torch_release()
    if release < OLDEST or release[0] != OLDEST[0]:
        raise UnknownTorchError(
            f"got torch {torch.__version__} at {torch.__file__}, wanted {OLDEST[0]}.{OLDEST[1]} or a later "
            f"{OLDEST[0]}.x; set `python` in the spec file to an interpreter with such a torch"
        )


@functools.cache
def op_infos() -> dict[str, Any]:
    """Every OpInfo of `op_db` by full name, in its order. The first call imports the database: seconds.

    Raises:
        UnknownTorchError: when the version is not known or the database has another form.
    """
    check_version()
    try:
        from torch.testing._internal import common_methods_invocations as database
    except ImportError as error:
        raise UnknownTorchError(
            f"importing PyTorch's operator database failed: {error}; the device environment needs numpy and expecttest"
        ) from error
    if not hasattr(database, "wrapper_set_seed"):
        raise UnknownTorchError(
            f"torch {torch.__version__}: op_db has no wrapper_set_seed around random operators; wanted 2.13's form"
        )
    # The database wraps its random operators so that each call draws from one constant seed and puts the generator
    # back. What a random operator does to the generator is what is tested here, so the wrapper goes.
    database.wrapper_set_seed = _call
    found: dict[str, Any] = {}
    for info in database.op_db:
        for name in ("full_name", "supported_dtypes", "supported_backward_dtypes", "sample_inputs", "op"):
            if not hasattr(info, name):
                raise UnknownTorchError(
                    f"torch {torch.__version__}: an OpInfo has no {name!r}; wanted torch 2.13's form"
                )
        if info.full_name in found:
            raise UnknownTorchError(f"torch {torch.__version__}: op_db has {info.full_name!r} twice")
        found[info.full_name] = info
    return found


def _call(operator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return operator(*args, **kwargs)


def forward_dtypes(info: Any, device_type: str) -> tuple[str, ...]:
    """Names of the dtypes that an OpInfo claims for a device type, sorted."""
    return tuple(sorted(dtype_name(dtype) for dtype in info.supported_dtypes(device_type)))


def supports_backward(info: Any, device_type: str, dtype: str) -> bool:
    """Whether an OpInfo claims a gradient for that dtype."""
    return getattr(torch, dtype) in info.supported_backward_dtypes(device_type)


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def raw_samples(info: Any, device: str, dtype: torch.dtype, requires_grad: bool) -> Iterator[RawSample]:
    """The samples of an OpInfo, in its order, drawn from the global random state.

    PyTorch's wrapper resets the seed to one constant before each sample; that is turned off, so that the caller's
    seed decides.
    """
    for sample in info.sample_inputs(device, dtype, requires_grad=requires_grad, set_seed=False):
        process = sample.output_process_fn_grad
        yield RawSample(
            sample.input, tuple(sample.args), dict(sample.kwargs), None if _is_identity(process) else process
        )


def seed_everything(seed: int) -> None:
    """Reset the random state of Python, numpy and torch's CPU generator."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    torch.default_generator.manual_seed(seed)


def random_state() -> tuple[Any, ...]:
    """The random state of Python, numpy and torch's CPU generator."""
    return random.getstate(), np.random.get_state(), torch.default_generator.get_state()


def set_random_state(state: tuple[Any, ...]) -> None:
    """Put back what `random_state` gave."""
    random.setstate(state[0])
    np.random.set_state(state[1])
    torch.default_generator.set_state(state[2])


def _is_identity(function: Any) -> bool:
    """Whether it is the function that `SampleInput` uses when it was given none."""
    return getattr(function, "__qualname__", "").startswith("SampleInput.__init__.")
