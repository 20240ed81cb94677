"""Running a piece of Python in a fresh process: what a test of importing and activating needs."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import neuron_ref

PACKAGE = Path(neuron_ref.__file__).parent


def import_path(first: Path) -> str:
    """A value for ``PYTHONPATH`` that puts a folder before what is there."""
    return os.pathsep.join(filter(None, [str(first), os.environ.get("PYTHONPATH")]))


def run_python(
    program: str, *, path: Path | None = None, environment: dict[str, str] | None = None, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run `program`; return what it wrote and its exit code.

    Args:
        program: Python source; indentation common to all lines is taken off.
        path: a folder to put first on the import path.
        environment: variables to set.
        timeout_s: seconds until the process is ended and the test fails.
    """
    variables = os.environ | (environment or {})
    if path is not None:
        variables["PYTHONPATH"] = import_path(path)
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env=variables,
        timeout=timeout_s,
        check=False,
    )


def output_of(program: str, *, path: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """What `program` printed; its failure fails the test with its traceback."""
    done = run_python(program, path=path, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout
