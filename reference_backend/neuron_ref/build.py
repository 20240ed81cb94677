"""``python -m neuron_ref.build``: compile the C++ part for the torch that this interpreter imports.

Incremental (ninja recompiles what changed), parallel, and over in milliseconds when the stamp of the present build
still holds. The library is linked in a build folder and then put in place in one step, so a process that imports it
meanwhile sees the old one or the new one.

Exit codes: 0 built or already up to date, 2 wrong usage, 3 could not be built.
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from neuron_ref import stamp
from neuron_ref.build_progress import CompiledFile, FailedFile, Progress, read_output
from neuron_ref.compile_units import write_units
from neuron_ref.errors import BuildError

_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build did."""

    stamp: stamp.Stamp
    compiled: int
    """Files that were compiled; 0 when the build was up to date."""
    seconds: float


def build(
    *, force: bool = False, jobs: int | None = None, flavour: str = stamp.RELEASE, output: TextIO = sys.stderr
) -> BuildResult:
    """Compile what changed and put the library in place.

    Args:
        force: compile every file, also when the build is up to date.
        jobs: files compiled at a time; by default the processors that this process may use.
        flavour: ``release``, ``debug``, ``address`` or ``thread``.
        output: where progress goes.

    Raises:
        BuildError: something that the build needs is missing, or a file does not compile.
    """
    started = time.monotonic()
    want = stamp.wanted(flavour)
    if not force and stamp.read(stamp.library_path()) == want:
        return BuildResult(want, 0, time.monotonic() - started)
    _require_tools()
    work = _work_folder(want)
    with _locked(work, output):
        if not force and stamp.read(stamp.library_path()) == want:  # another process built it while we waited
            return BuildResult(want, 0, time.monotonic() - started)
        if force:
            shutil.rmtree(work / "objects", ignore_errors=True)
        compiled = _compile(work, want, jobs or len(os.sched_getaffinity(0)), Progress(output, time.monotonic()))
        _install(work, want)
    return BuildResult(want, compiled, time.monotonic() - started)


def _require_tools() -> None:
    compiler = os.environ.get("CXX", "c++").split()[0]
    if shutil.which(compiler) is None:
        raise BuildError(
            f"no C++ compiler.\n  got:    {compiler} is not in PATH\n  wanted: g++ 11 or newer, or clang++\n"
            "  do:     install g++ (Debian, Ubuntu: apt install g++), or name a compiler in CXX"
        )
    if not _ninja_folders():
        raise BuildError(
            "no ninja.\n  got:    neither a program nor a Python package of that name\n  wanted: ninja 1.10 or newer\n"
            f"  do:     {sys.executable} -m pip install ninja"
        )
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        raise BuildError(
            f"no headers of Python.\n  got:    {header} is not there\n  wanted: Python's C headers\n"
            "  do:     install them (Debian, Ubuntu: apt install python3-dev)"
        )
    if not stamp.source_files():
        raise BuildError(f"no C++ sources in {stamp.SOURCES}; reinstall torch-anydevice")


def _ninja_folders() -> list[str]:
    """Folders that hold ninja: PATH, and beside the interpreter, where pip puts it without activating anything."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("ninja") or shutil.which("ninja", path=beside)
    return [str(Path(found).parent)] if found else []


def _work_folder(want: stamp.Stamp) -> Path:
    """A build folder of its own for each torch, interpreter and flavour, so that switching recompiles nothing.

    In a checkout it is ``build/`` there; for an installed package, whose folder may be read-only, the user's cache.
    """
    key = hashlib.sha256(f"{want.torch} {want.git} {want.abi} {stamp.find_torch().folder}".encode()).hexdigest()[:12]
    checkout = stamp.PACKAGE.parent.parent
    if (checkout / "pyproject.toml").exists():
        root = checkout / "build"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")))
    return root / "neuron_ref" / f"{want.flavour}-{key}"


@contextmanager
def _locked(work: Path, output: TextIO) -> Iterator[None]:
    """Let one process at a time build in `work`."""
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = (work / "lock").open("w")
    except OSError as error:
        raise BuildError(f"the build folder {work} cannot be written: {error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another build in {work}", file=output, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compile(work: Path, want: stamp.Stamp, jobs: int, progress: Progress) -> int:
    """Run the compile step and follow its output; return the number of files compiled."""
    environment = os.environ | {
        "MAX_JOBS": str(jobs),
        "PATH": os.pathsep.join([os.environ.get("PATH", ""), *_ninja_folders()]),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(stamp.PACKAGE.parent), os.environ.get("PYTHONPATH")])),
        "PYTHONUNBUFFERED": "1",
        # Once `neuron-ref enable` has run, importing torch would load the very library that is about to be built.
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }
    command = [sys.executable, "-m", "neuron_ref.compile_step", "--work", str(work), "--include", str(stamp.SOURCES)]
    units = write_units(stamp.source_files(), stamp.SOURCES, work / "units")
    command += ["--flavour", want.flavour, *map(str, units)]
    failures: list[FailedFile] = []
    tail: list[str] = []
    compiled = 0
    # In `work`, because setuptools would read a pyproject.toml in the current folder.
    with (
        (work / "log.txt").open("w") as log,
        subprocess.Popen(
            command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        assert process.stdout is not None
        progress.say(f"importing torch {want.torch}")
        for event in read_output(_copied(process.stdout, log)):
            if isinstance(event, CompiledFile):
                compiled = event.done
                progress.show(event)
                if event.done == event.total:
                    progress.say("linking")
            elif isinstance(event, FailedFile):
                failures.append(event)
            else:
                tail = [*tail[1 - _TAIL_LINES :], event.text]
    progress.end()
    if process.returncode != 0:
        said = "\n".join(failure.message for failure in failures) or "\n".join(tail)
        raise BuildError(
            f"{said}\n\nneuron_ref was not built ({len(failures)} of its files did not compile).\n"
            f"  wanted: {want.describe()}\n  log:    {work / 'log.txt'}\n"
            "  do:     correct the above and repeat; files that compiled are kept"
        )
    return compiled


def _copied(lines: Iterable[str], log: TextIO) -> Iterator[str]:
    for line in lines:
        log.write(line)
        yield line


def _install(work: Path, want: stamp.Stamp) -> None:
    """Put the library in place with its stamp, in one step."""
    target = stamp.library_path()
    built = work / "lib" / "neuron_ref" / target.name
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copyfile(built, fresh)
        stamp.append(fresh, want)
        fresh.replace(target)
    except OSError as error:
        raise BuildError(f"the library cannot be put at {target}: {error}") from error
    finally:
        fresh.unlink(missing_ok=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a build, shared with ``neuron-ref build``."""
    parser.add_argument("--force", action="store_true", help="compile every file, also when nothing changed")
    parser.add_argument("--jobs", type=_positive, metavar="N", help="files compiled at a time (default: processors)")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--debug", action="store_true", help="no optimisation, debug symbols")
    kind.add_argument("--sanitize", choices=["address", "thread"], help="instrument for a sanitizer")


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Build as the parsed options say; return the exit code."""
    flavour = "debug" if arguments.debug else arguments.sanitize or stamp.RELEASE
    try:
        result = build(force=arguments.force, jobs=arguments.jobs, flavour=flavour)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    what = f"compiled {result.compiled} files in {result.seconds:.0f} s" if result.compiled else "up to date"
    print(f"neuron_ref: {what} ({result.stamp.describe()})")
    if arguments.sanitize:
        print(f"Run it with the sanitizer loaded first: LD_PRELOAD=$(c++ -print-file-name={_RUNTIMES[flavour]})")
    return 0


_RUNTIMES = {"address": "libasan.so", "thread": "libtsan.so"}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m neuron_ref.build",
        description="Compile the C++ part of the reference device for the torch that this interpreter imports.",
        epilog="Exit codes: 0 built or already up to date, 2 wrong usage, 3 could not be built.\n\nExamples:\n"
        "  python -m neuron_ref.build\n  python -m neuron_ref.build --force --jobs 2\n"
        "  python -m neuron_ref.build --sanitize thread",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
