"""The command ``neuron-ref``: what is built and visible, and changing that.

Exit codes: 0 done, 1 the device cannot be used (info), 2 wrong usage, 3 could not be built, started or written.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import neuron_ref
from neuron_ref import build, enabling, stamp
from neuron_ref.errors import NeuronRefError

# Variables that change what this package or the torch beside it does.
_PREFIXES = ("NEURON_", "TORCH_NEURONX_")
_SINGLE_VARIABLES = ("TORCH_DEVICE_BACKEND_AUTOLOAD", "PYTORCH_TESTING_DEVICE_FOR_CUSTOM", "CXX", "MAX_JOBS")

_EPILOG = """\
Exit codes: 0 done; 1 there is no usable build (info); 2 wrong usage; 3 could not be built, started or written.

Examples:
  neuron-ref info              what is built, for which torch, and which devices there are
  neuron-ref info --json       the same for programs
  neuron-ref build --jobs 2    as python -m neuron_ref.build
  neuron-ref enable            let every `import torch` of this environment load the device
  neuron-ref disable           undo that
"""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    index: int
    name: str
    model: str
    total_memory: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Info:
    """What `info` prints."""

    version: str
    python: str
    library: str
    build: str
    """``current``, ``stale`` or ``missing``."""
    got: stamp.Stamp | None
    wanted: stamp.Stamp
    problem: str
    """Why the device cannot be used; empty where it can."""
    devices: tuple[DeviceInfo, ...]
    enabled: bool
    environment: dict[str, str]


def collect() -> Info:
    """Look at the build and, where it is usable, activate the device and look at what there is.

    Raises:
        BuildError: torch cannot be imported.
    """
    wanted, got = stamp.wanted(), stamp.read(stamp.library_path())
    environment = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(_PREFIXES) or name in _SINGLE_VARIABLES
    }
    devices: tuple[DeviceInfo, ...] = ()
    problem = ""
    try:
        stamp.check()
        devices = _devices()
    except (NeuronRefError, ImportError, RuntimeError, ValueError) as error:
        problem = str(error)
    state = "missing" if got is None else "stale" if stamp.differences(got, wanted) else "current"
    return Info(
        version=neuron_ref.__version__,
        python=f"{platform.python_version()} ({sys.executable})",
        library=str(stamp.library_path()),
        build=state,
        got=got,
        wanted=wanted,
        problem=problem,
        devices=devices,
        enabled=enabling.visibility().ours,
        environment=environment,
    )


def _devices() -> tuple[DeviceInfo, ...]:
    # An entry point of another backend must not take torch's slot before we look.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    neuron_ref.activate()
    from neuron_ref import _C

    found = (_C.get_device_properties(index) for index in range(_C.device_count()))
    return tuple(DeviceInfo(one.index, one.name, one.model, one.total_memory) for one in found)


def _text(info: Info) -> str:
    rows = [
        ("neuron_ref", info.version),
        ("python", info.python),
        ("torch", f"{info.wanted.torch} ({info.wanted.git[:10]})"),
        ("library", info.library),
        ("build", info.build + (f": {info.got.describe()}" if info.got else "")),
    ]
    if info.build == "stale":
        rows.append(("", f"wanted: {info.wanted.describe()}"))
    if not info.problem:
        rows += [
            (
                "device",
                f"neuron:{one.index}  {one.name}, model {one.model}, {one.total_memory / 2**30:.1f} GiB",
            )
            for one in info.devices
        ] or [("device", "none")]
    rows.append(("enabled", "yes, by `import torch`" if info.enabled else "no: call neuron_ref.activate()"))
    rows += [("environment", f"{name}={value}") for name, value in info.environment.items()]
    lines = [f"{title:12}{text}" for title, text in rows]
    if info.problem:
        lines += ["", info.problem]
    return "\n".join(lines)


def _info(arguments: argparse.Namespace) -> int:
    info = collect()
    print(json.dumps({"schema": 1, **asdict(info)}, indent=2) if arguments.json else _text(info))
    return 1 if info.problem else 0


def _enable(arguments: argparse.Namespace) -> int:
    for folder in enabling.enable():
        print(f"wrote {folder}")
    print("`import torch` of this environment now loads the device; `neuron-ref disable` undoes this.")
    return 0


def _disable(arguments: argparse.Namespace) -> int:
    removed = enabling.disable()
    for folder in removed:
        print(f"removed {folder}")
    if not removed:
        print("nothing to remove: neuron-ref enable has not been run in this environment")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="neuron-ref",
        description="The reference PyTorch device `neuron`: what is built, building it, and making it visible.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="info|build|enable|disable")
    info = commands.add_parser("info", help="what is built, for which torch, the devices and the environment")
    info.add_argument("--json", action="store_true", help="print JSON")
    info.set_defaults(run=_info)
    building = commands.add_parser("build", help="compile the C++ part for the importable torch")
    build.add_arguments(building)
    building.set_defaults(run=build.run)
    enable = commands.add_parser("enable", help="let every `import torch` of this environment load the device")
    enable.set_defaults(run=_enable)
    disable = commands.add_parser("disable", help="undo enable")
    disable.set_defaults(run=_disable)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except NeuronRefError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
