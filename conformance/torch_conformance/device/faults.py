"""Switching faults: overlays by their names, all other names through the spec file's own switch."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence

from .entry_faults import ENTRY_FAULTS
from .overlays import OVERLAYS, switch_overlays
from .target import Device, resolve

FAULTS_VARIABLE = "TORCH_CONFORMANCE_FAULTS"
"""Names of faults, separated by commas."""


class UnknownFaultError(ValueError):
    """A fault that neither the suite nor the backend has."""


def names_from_environment() -> list[str]:
    """The faults that the environment asks for."""
    return [name.strip() for name in os.environ.get(FAULTS_VARIABLE, "").split(",") if name.strip()]


def switch(names: Sequence[str], device: Device) -> None:
    """Turn the named faults on, for as long as the process lives.

    Raises:
        UnknownFaultError: for a name that is neither an overlay nor a fault of the backend.
    """
    known = {**OVERLAYS, **ENTRY_FAULTS}
    own = [name for name in names if name not in known]
    if own and not device.spec.faults:
        near = difflib.get_close_matches(own[0], known, n=1, cutoff=0.0)
        raise UnknownFaultError(
            f"got the fault {own[0]!r} in {FAULTS_VARIABLE}, wanted one of the suite's (nearest: {near[0]}); "
            f"{device.spec.name} has none of its own, since its spec file names no `faults`"
        )
    if own:
        try:
            resolve(device.spec.faults)(own)
        except ValueError as error:
            raise UnknownFaultError(f"got {own} in {FAULTS_VARIABLE}: {error}") from error
    for name in names:
        if name in ENTRY_FAULTS:
            ENTRY_FAULTS[name](device)
    switch_overlays([name for name in names if name in OVERLAYS], device)
