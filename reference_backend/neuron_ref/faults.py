"""Faults on purpose: ways in which this device can be made wrong, so that a test can prove that it would notice.

A fault is a name. Those of the C++ part are switched inside it; those of the Python part are in `python_faults`. The
suite switches them through its spec file (``faults = "neuron_ref.faults:switch"``), a person through the environment:
``NEURON_REF_FAULTS=autocast_leaks,set_device_ignored``.
"""

import difflib
from collections.abc import Sequence

from neuron_ref import _C, python_faults
from neuron_ref.patching import Patch

_applied: dict[str, Patch] = {}


def names() -> list[str]:
    """All faults, in alphabetical order."""
    return sorted([*_C.fault_names(), *python_faults.FAULTS])


def switch(wanted: Sequence[str]) -> list[str]:
    """Turn faults on; those that are on stay on.

    Args:
        wanted: names; may be empty.

    Returns:
        All names that exist.

    Raises:
        ValueError: a name is unknown; then nothing is changed.
    """
    known = names()
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise ValueError(f"unknown fault {name!r}; the nearest of {len(known)} is {near!r}")
    for name in wanted:
        if name not in python_faults.FAULTS:
            _C.set_fault(name, True)
        elif name not in _applied:
            patch = Patch()
            python_faults.FAULTS[name].apply(patch)
            _applied[name] = patch
    return known


def clear() -> None:
    """Turn all faults off, the last one first."""
    for name in reversed(list(_applied)):
        _applied.pop(name).undo()
    for name in _C.fault_names():
        _C.set_fault(name, False)
