"""A backend under test: how to start it and what it claims.

Standard library only and Python 3.10 clean: the parent and the device process both import this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field

CAPABILITIES = {
    "streams": "streams and events with real ordering",
    "event_timing": "events that measure device time",
    "memory_stats": "allocator statistics through torch.accelerator.memory_stats",
    "pinned_memory": "page-locked host memory",
    "autocast": "torch.autocast and torch.amp.GradScaler",
    "generator": "a device generator with a state of its own",
    "distributed": "a torch.distributed backend for the device",
    "compile": "torch.compile with at least the aot_eager backend",
    "graphs": "torch.accelerator.Graph",
    "multi_device": "more than one device in one process",
    "isolated_memory": "host code cannot read device memory",
}
"""Capability ids that a spec file may claim, with what each means."""

STARTS = ("fork", "spawn")


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A spec file, or its equivalent for a built-in name.

    Attributes:
        name: what the user calls the backend (``cpu``, ``torch_mychip``); file and report names use it.
        device: the device type as PyTorch knows it after activation (``cpu``, ``mychip``).
        python: the interpreter of the device processes; empty means the parent's own.
        module: what to import in the device process; empty for built-in devices.
        activate: ``module:function`` to call after the import; empty when the import registers the device.
        env: environment of the device processes, over the parent's.
        devices: how many devices the tests may use.
        claims: ids of `CAPABILITIES`.
        dtypes: dtypes claimed (``float32``, ...); empty means every dtype that an OpInfo claims.
        expectations: absolute path of the expectation file, or empty.
        faults: ``module:function`` that lists and switches faults, or empty.
        timeout_s: time limit of one clause, or of one sample of a case that has samples.
        start: ``fork`` from a launcher that has imported torch, or ``spawn`` a new interpreter for each role.
        path: entries put in front of the device processes' PYTHONPATH (an overlay of torch, a checkout).
        source: the file that the spec was read from, or empty.
    """

    name: str
    device: str
    python: str = ""
    module: str = ""
    activate: str = ""
    env: dict[str, str] = field(default_factory=dict)
    devices: int = 1
    claims: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    expectations: str = ""
    faults: str = ""
    timeout_s: float = 120.0
    start: str = "fork"
    path: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend that was started once: what it says of itself.

    Attributes:
        spec: how it was started.
        torch: version of torch in the device process.
        torch_git: git hash of that torch.
        torch_path: real path of its ``torch/`` folder.
        python: version of the device interpreter.
        count: devices it has.
        device_name: what the device calls itself, or empty.
        build: a stamp of the backend's own build, or empty.
        packages: versions of numpy, scipy and the like that decide which cases exist.
    """

    spec: BackendSpec
    torch: str
    torch_git: str
    torch_path: str
    python: str
    count: int
    device_name: str = ""
    build: str = ""
    packages: dict[str, str] = field(default_factory=dict)
