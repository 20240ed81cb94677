"""Making the device visible to every ``import torch`` of an environment, and undoing that.

Libraries look for an importable package and a distribution named torch-neuronx, and torch loads it through the entry
point group ``torch.backends``. Installing this project alone must change no one's ``import torch``, so `enable` writes
that small distribution and `disable` removes it. pip can list and uninstall it like any other.
"""

import importlib.metadata
import importlib.util
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import neuron_ref
from neuron_ref import stamp
from neuron_ref.errors import NeuronRefError

DISTRIBUTION = "torch-neuronx"
PACKAGE = "torch_neuronx"
_INSTALLER = "neuron-ref"
_VERSION = f"{neuron_ref.__version__}+neuron.ref"

_INIT = '''"""Loads the reference device of torch-anydevice: written by `neuron-ref enable`, removed by `disable`."""

from neuron_ref.visibility import __getattr__ as __getattr__
from neuron_ref.visibility import _autoload as _autoload
'''
_ENTRY_POINTS = f"""[torch.backends]
{PACKAGE} = {PACKAGE}:_autoload

[torch_dynamo_backends]
neuron = neuron_ref.compile_backend:neuron
"""
_METADATA = f"""Metadata-Version: 2.1
Name: {DISTRIBUTION}
Version: {_VERSION}
Summary: Makes the reference device of torch-anydevice visible as torch-neuronx; written by `neuron-ref enable`.
Requires-Dist: torch-anydevice
"""


@dataclass(frozen=True, slots=True)
class Visibility:
    """What is installed under the name that libraries look for."""

    ours: bool
    """Written by `enable`."""
    foreign: str
    """Where another torch-neuronx was found; empty where there is none."""


def site_packages() -> Path:
    return Path(sysconfig.get_paths()["purelib"])


def visibility() -> Visibility:
    """Look for a distribution or package of the name, whoever wrote it."""
    try:
        distribution = importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        spec = importlib.util.find_spec(PACKAGE)
        return Visibility(ours=False, foreign=str(spec.origin or spec.submodule_search_locations) if spec else "")
    if (distribution.read_text("INSTALLER") or "").strip() == _INSTALLER:
        return Visibility(ours=True, foreign="")
    return Visibility(ours=False, foreign=f"{DISTRIBUTION} {distribution.version} in {distribution.locate_file('')}")


def enable(root: Path | None = None) -> list[Path]:
    """Write the distribution; return the folders written.

    Args:
        root: where; by default the site-packages of this interpreter.

    Raises:
        StaleBuildError: the C++ part is not built: every ``import torch`` would fail.
        NeuronRefError: another torch-neuronx is installed, or site-packages cannot be written.
    """
    present = visibility()
    if present.foreign:
        raise NeuronRefError(
            f"another {DISTRIBUTION} is installed, and a process has room for one.\n  got:    {present.foreign}\n"
            f"  wanted: no {DISTRIBUTION} beside this one\n"
            f"  do:     uninstall it, or use a virtual environment without it"
        )
    stamp.check()
    root = root or site_packages()
    package, information = _folders(root)
    files = {
        package / "__init__.py": _INIT,
        information / "METADATA": _METADATA,
        information / "entry_points.txt": _ENTRY_POINTS,
        information / "INSTALLER": f"{_INSTALLER}\n",
        information / "top_level.txt": f"{PACKAGE}\n",
    }
    record = "".join(f"{file.relative_to(root).as_posix()},,\n" for file in [*files, information / "RECORD"])
    try:
        # RECORD and entry points last: until they are there, neither pip nor torch takes notice.
        for file, text in (files | {information / "RECORD": record}).items():
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        _remove(package, information)
        raise NeuronRefError(f"{root} cannot be written: {error}; use a virtual environment") from error
    return [package, information]


def disable(root: Path | None = None) -> list[Path]:
    """Remove what `enable` wrote; return the folders removed, none where there was nothing.

    Args:
        root: where; by default the site-packages of this interpreter.

    Raises:
        NeuronRefError: the torch-neuronx that is installed is not ours, or cannot be removed.
    """
    present = visibility()
    if present.foreign:
        raise NeuronRefError(
            f"the {DISTRIBUTION} that is installed was not written by neuron-ref.\n  got:    {present.foreign}\n"
            f"  do:     remove it with what installed it, such as pip uninstall {DISTRIBUTION}"
        )
    if not present.ours:
        return []
    folders = [folder for folder in _folders(root or site_packages()) if folder.exists()]
    try:
        _remove(*folders)
    except OSError as error:
        raise NeuronRefError(f"{folders[0].parent} cannot be written: {error}") from error
    return folders


def _folders(root: Path) -> tuple[Path, Path]:
    return root / PACKAGE, root / f"{PACKAGE}-{_VERSION}.dist-info"


def _remove(*folders: Path) -> None:
    for folder in folders:
        if folder.is_dir():
            shutil.rmtree(folder)
