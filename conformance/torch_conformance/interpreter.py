"""Ask a device interpreter where torch and a backend are, without importing either."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import codec
from .backend import BackendSpec
from .errors import BackendStartError

ASK_TIMEOUT_S = 60.0
SMALLEST_PYTHON = (3, 10)
MODULE_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
FAULTS = "TORCH_CONFORMANCE_FAULTS"


@dataclass(frozen=True, slots=True)
class ModulePlace:
    """Where a module lies; a package has a folder, a plain module only a file."""

    file: str
    folder: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What an interpreter sees.

    Attributes:
        python: its version.
        torch_folder: real path of ``torch/``, or empty.
        packages: versions of torch, numpy, scipy and expecttest; empty text for an absent one.
        modules: the asked names; None for an absent one.
        path: its ``sys.path``.
    """

    python: str
    torch_folder: str
    packages: dict[str, str] = field(default_factory=dict)
    modules: dict[str, ModulePlace | None] = field(default_factory=dict)
    path: tuple[str, ...] = ()


def program(spec: BackendSpec) -> str:
    """The device interpreter of a spec.

    Raises:
        BackendStartError: when there is no such program.
    """
    if not spec.python:
        return sys.executable
    found = shutil.which(spec.python)
    if found is None:
        raise BackendStartError(
            f"{spec.name}: cannot start the device interpreter {spec.python!r}: there is no such program. "
            f"Correct the key 'python'{f' in {spec.source}' if spec.source else ''}."
        )
    return found


def environment(spec: BackendSpec, faults: tuple[str, ...] = ()) -> dict[str, str]:
    """The environment of the device processes of ``spec``.

    PyTorch loads no backend by itself, one thread computes (workers are the parallelism), and a torch that stands in
    front of the installed one gets bytecode of its own: shared bytecode ran code other than the source showed.
    """
    out = dict(os.environ)
    out.pop("PYTEST_CURRENT_TEST", None)
    out.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", PYTHONUNBUFFERED="1")
    out.update(spec.env)
    out[MODULE_AUTOLOAD] = "0"
    if faults:
        out[FAULTS] = ",".join(faults)
    if spec.path:
        rest = out.get("PYTHONPATH", "")
        out["PYTHONPATH"] = os.pathsep.join([*spec.path, *([rest] if rest else [])])
        overlay = next((entry for entry in spec.path if (Path(entry) / "torch").is_dir()), None)
        if overlay is not None and "PYTHONPYCACHEPREFIX" not in spec.env:
            out["PYTHONPYCACHEPREFIX"] = str(Path(overlay) / ".pycache")
    return out


def ask(spec: BackendSpec, *names: str) -> Facts:
    """What the device interpreter of ``spec`` sees, with ``names`` looked up as top-level modules.

    Raises:
        BackendStartError: when the interpreter does not start or is older than Python 3.10.
    """
    # Only these decide what an interpreter sees: a spec that is read twice, or changes others, needs no second answer.
    python = {name: value for name, value in environment(spec).items() if name.startswith("PYTHON")}
    return _ask(program(spec), tuple(sorted(python.items())), names, spec.name)


@functools.lru_cache(maxsize=64)
def _ask(python: str, env: tuple[tuple[str, str], ...], names: tuple[str, ...], backend: str) -> Facts:
    script = str(Path(__file__).with_name("inquiry.py"))
    rest = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        done = subprocess.run(
            [python, script, *names],
            env={**rest, **dict(env)},
            capture_output=True,
            text=True,
            timeout=ASK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendStartError(f"{backend}: cannot start the device interpreter {python}: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BackendStartError(
            f"{backend}: the device interpreter {python} ended with status {done.returncode}: {last}. "
            "Wanted a Python of 3.10 or later that starts without errors."
        )
    facts = codec.loads(Facts, done.stdout.splitlines()[-1])
    if tuple(int(part) for part in facts.python.split(".")[:2]) < SMALLEST_PYTHON:
        raise BackendStartError(
            f"{backend}: got Python {facts.python} in {python}, wanted 3.10 or later for the device processes."
        )
    return facts
