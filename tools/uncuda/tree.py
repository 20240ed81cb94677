"""A torch tree on disk: where it lies and which version it is, read without importing it."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

_ASSIGNMENT = re.compile(r"^(__version__|git_version)\s*(?::[^=]*)?=\s*['\"]([^'\"]*)['\"]", re.MULTILINE)


class TreeError(Exception):
    """A folder that does not hold a torch tree."""


@dataclass(frozen=True, slots=True)
class TorchTree:
    """A folder that holds ``torch/``.

    Attributes:
        root: the folder that contains ``torch/`` (``site-packages``, or a checkout).
        version: as ``torch.__version__`` says it (``2.13.0+cpu``).
        git: the hash it was built from; empty when the tree does not tell.
    """

    root: Path
    version: str
    git: str

    @property
    def package(self) -> Path:
        """The ``torch/`` folder itself."""
        return self.root / "torch"

    @property
    def base(self) -> str:
        """The version without its local part: what a patch series is tied to (``2.13.0``)."""
        return self.version.partition("+")[0]


def read_tree(path: Path) -> TorchTree:
    """Read the torch tree at ``path``, which is ``torch/`` or the folder that contains it.

    Raises:
        TreeError: when there is no ``torch/`` or it does not say its version.
    """
    root = path.parent if path.name == "torch" and (path / "__init__.py").is_file() else path
    package = root / "torch"
    if not (package / "__init__.py").is_file():
        raise TreeError(f"got {path}, wanted a folder that holds torch/__init__.py (or that torch/ folder itself)")
    found: dict[str, str] = {}
    generated = package / "version.py"
    if generated.is_file():
        found = dict(_ASSIGNMENT.findall(generated.read_text(encoding="utf-8")))
    checkout = root / "version.txt"
    if "__version__" not in found and checkout.is_file():
        # A checkout has no torch/version.py before it is built; 2.13.0a0 there is the development of 2.13.0.
        found["__version__"] = re.sub(r"a0$", "", checkout.read_text(encoding="utf-8").strip())
    if "__version__" not in found:
        raise TreeError(f"{package} does not say its version: neither {generated} nor {checkout} was found")
    return TorchTree(root=root, version=found["__version__"], git=found.get("git_version", ""))


def installed_tree() -> TorchTree:
    """The torch that this interpreter would import.

    Raises:
        TreeError: when no torch is installed.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise TreeError("no torch is installed for this interpreter; install torch 2.13.0, or name a tree")
    return read_tree(Path(spec.origin).parent)
