"""From a name on the command line to a `BackendSpec`, without importing the backend."""

from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import dataclass
from pathlib import Path

from .backend import BackendSpec
from .errors import UsageError, nearest
from .interpreter import ask
from .spec import FILE_NAME, read_spec

BUILT_IN = {
    "cpu": BackendSpec(name="cpu", device="cpu"),
    "meta": BackendSpec(name="meta", device="meta"),
    "cuda": BackendSpec(
        name="cuda",
        device="cuda",
        start="spawn",
        claims=(
            "streams",
            "event_timing",
            "memory_stats",
            "pinned_memory",
            "autocast",
            "generator",
            "distributed",
            "compile",
            "graphs",
            "isolated_memory",
        ),
    ),
    "xpu": BackendSpec(
        name="xpu",
        device="xpu",
        start="spawn",
        claims=("streams", "event_timing", "memory_stats", "pinned_memory", "autocast", "generator", "compile"),
    ),
    "mps": BackendSpec(name="mps", device="mps", start="spawn", claims=("autocast", "generator")),
}
"""Devices that come with PyTorch. Accelerators are spawned: their runtimes must not be forked."""

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@dataclass(frozen=True, slots=True)
class Known:
    """A backend that can be named: its name, where it was found, and its spec file if it has one."""

    name: str
    origin: str
    source: str = ""


def find_backend(name: str) -> BackendSpec:
    """Resolve a NAME: a built-in device, a spec file, a module that carries a spec file, or a plain module.

    Raises:
        UsageError: when nothing is found, naming the nearest and all that exist; or when a spec file is broken.
        BackendStartError: when the interpreter that must be asked does not start.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name.endswith(".toml") or "/" in name or os.sep in name:
        return _from_path(name)
    if not _MODULE.fullmatch(name):
        raise _unknown(name)
    top = name.partition(".")[0]
    place = ask(BackendSpec(name=name, device=""), top).modules.get(top)
    if place is None:
        raise _unknown(name)
    if place.folder and (Path(place.folder) / FILE_NAME).is_file():
        return read_spec(Path(place.folder) / FILE_NAME)
    # A plain module: importing it registers the device, whose name the device process finds out.
    return BackendSpec(name=name, device="", module=name)


def _from_path(text: str) -> BackendSpec:
    path = Path(text).expanduser()
    if path.is_dir():
        path = path / FILE_NAME
    if not path.is_file():
        raise UsageError(
            f"got the backend {text!r}, but {path.absolute()} is no file. Wanted a spec file (.toml), a built-in "
            f"device ({', '.join(BUILT_IN)}) or the name of a module; `torch-conformance backends` lists what exists."
        )
    return read_spec(path)


def _unknown(name: str) -> UsageError:
    names = [known.name for known in known_backends()]
    guess = nearest(name, names)
    return UsageError(
        f"unknown backend {name!r}{f'; did you mean {guess!r}?' if guess else '.'} "
        f"There are {', '.join(names)}; a name may also be any module that the interpreter can import, or the path of "
        "a spec file. `torch-conformance backends` says more."
    )


def known_backends() -> list[Known]:
    """Built-in devices, then every package on the interpreter's path that carries a spec file, by name."""
    out = [Known(name, "built in") for name in BUILT_IN]
    found: dict[str, Known] = {}
    facts = ask(BackendSpec(name="backends", device=""))
    for entry in [*facts.path, *_editable_roots(facts.path)]:
        for file in _spec_files(Path(entry)):
            found.setdefault(file.parent.name, Known(file.parent.name, "module", str(file)))
    return out + [found[name] for name in sorted(found)]


def _spec_files(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []
    return [folder / name / FILE_NAME for name in names if (folder / name / FILE_NAME).is_file()]


def _editable_roots(path: tuple[str, ...]) -> list[str]:
    """Roots of editable installs, which import hooks add without an entry in ``sys.path``."""
    out: list[str] = []
    for entry in path:
        for finder in Path(entry).glob("__editable___*_finder.py"):
            text = finder.read_text(encoding="utf-8", errors="replace")
            mapping = re.search(r"^MAPPING[^=]*= (\{.*\})$", text, re.MULTILINE)
            if mapping:
                out += [str(Path(place).parent) for place in re.findall(r":\s*'([^']+)'", mapping.group(1))]
    return sorted(set(out))


def with_options(spec: BackendSpec, *, timeout_s: float | None = None, expectations: Path | None = None) -> BackendSpec:
    """The spec with what the command line says over it."""
    if timeout_s is not None:
        spec = dataclasses.replace(spec, timeout_s=timeout_s)
    if expectations is not None:
        spec = dataclasses.replace(spec, expectations=str(expectations.absolute()))
    return spec
