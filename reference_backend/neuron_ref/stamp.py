"""What a build was made from and for, and whether that still holds.

The stamp is written behind the last byte of the library itself (the loader ignores it), so that a library and its
stamp are replaced in one step and can never belong to different builds. Nothing here imports torch: an up-to-date
build is recognised in milliseconds.
"""

import ast
import hashlib
import importlib.util
import json
import sys
import sysconfig
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from neuron_ref.errors import BuildError, StaleBuildError

PACKAGE = Path(__file__).resolve().parent
SOURCES = PACKAGE / "csrc"

RELEASE = "release"

# Marks the start of the stamp inside the library; the JSON object after it ends the file.
_MARK = b"\nneuron_ref-stamp:"
_LONGEST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a build depends on."""

    torch: str
    """Version of torch, as in ``torch.__version__``."""
    git: str
    """Commit that torch was built from."""
    abi: str
    """Python's binary interface, as in ``cpython-311-x86_64-linux-gnu``."""
    source: str
    """Digest of the C++ sources and of the flags they are compiled with."""
    flavour: str = RELEASE
    """``release``, ``debug``, ``address`` or ``thread``. Any flavour may be loaded."""

    def describe(self) -> str:
        return f"torch {self.torch} ({self.git[:10]}), {self.abi}, sources {self.source[:12]}, {self.flavour}"


@dataclass(frozen=True, slots=True)
class TorchTree:
    """The torch that ``import torch`` finds, read without importing it."""

    folder: Path
    version: str
    git: str


def find_torch() -> TorchTree:
    """Find the importable torch.

    Raises:
        BuildError: there is none, or its ``version.py`` does not say which it is.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise BuildError(
            f"torch cannot be imported.\n  got:    no torch for {sys.executable}\n  wanted: torch 2.13 or newer\n"
            f"  do:     {sys.executable} -m pip install torch"
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    version_file = folder / "version.py"
    try:
        module = ast.parse(version_file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError) as error:
        raise BuildError(f"{version_file} cannot be read: {error}; reinstall torch") from error
    values: dict[str, str] = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            values |= {target.id: str(node.value.value) for target in node.targets if isinstance(target, ast.Name)}
    if "__version__" not in values or "git_version" not in values:
        raise BuildError(f"{version_file} has no __version__ and git_version; reinstall torch")
    return TorchTree(folder, values["__version__"], values["git_version"])


def abi() -> str:
    return str(sysconfig.get_config_var("SOABI"))


def library_path() -> Path:
    """Where the built library belongs for this interpreter."""
    return PACKAGE / f"_C{sysconfig.get_config_var('EXT_SUFFIX')}"


def source_files() -> list[Path]:
    """Every C++ file that is compiled, in a fixed order."""
    return sorted(SOURCES.rglob("*.cpp"))


def source_digest() -> str:
    """Digest of all that decides what the compiler writes: sources, headers, and the module that holds the flags."""
    digest = hashlib.sha256()
    for file in [*sorted(SOURCES.rglob("*.h")), *source_files(), PACKAGE / "compile_step.py"]:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(PACKAGE).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def wanted(flavour: str = RELEASE) -> Stamp:
    """The stamp that a build made now would get."""
    tree = find_torch()
    return Stamp(torch=tree.version, git=tree.git, abi=abi(), source=source_digest(), flavour=flavour)


def append(library: Path, stamp: Stamp) -> None:
    """Write `stamp` behind the last byte of `library`."""
    with library.open("ab") as file:
        file.write(_MARK + json.dumps(asdict(stamp)).encode())


def read(library: Path) -> Stamp | None:
    """The stamp of a library; None where there is no library or it carries none that can be read."""
    try:
        with library.open("rb") as file:
            file.seek(max(0, library.stat().st_size - _LONGEST_BYTES))
            tail = file.read()
    except OSError:
        return None
    _, mark, text = tail.rpartition(_MARK)
    if not mark:
        return None
    try:
        values = json.loads(text)
        return Stamp(**values)
    except (ValueError, TypeError):
        return None


def differences(got: Stamp, want: Stamp) -> list[str]:
    """The names of the fields that make a build stale. The flavour is none of them: every flavour may be loaded."""
    names = [field.name for field in fields(Stamp) if field.name != "flavour"]
    return [name for name in names if getattr(got, name) != getattr(want, name)]


def check() -> Stamp:
    """The stamp of the present build.

    Raises:
        StaleBuildError: there is no build, or it was made from other sources or for another torch or Python.
        BuildError: torch cannot be imported.
    """
    want = wanted()
    library = library_path()
    got = read(library)
    command = f"{sys.executable} -m neuron_ref.build"
    if got is None:
        reason = "without a stamp" if library.exists() else "not there"
        raise StaleBuildError(
            f"neuron_ref is not built.\n  got:    {library} is {reason}\n  wanted: {want.describe()}\n"
            f"  do:     {command}"
        )
    changed = differences(got, want)
    if changed:
        raise StaleBuildError(
            f"the build of neuron_ref is stale ({', '.join(changed)} changed).\n  got:    {got.describe()}\n"
            f"  wanted: {want.describe()}\n  do:     {command}"
        )
    return got
