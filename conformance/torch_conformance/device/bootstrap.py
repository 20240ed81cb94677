"""The entry of every process that imports torch: ``PYTHON bootstrap.py ROLE SOCKET_FD STACKS_FD``.

ROLE is ``launcher``, ``oracle`` or ``device``; SOCKET_FD is an inherited stream socket, STACKS_FD what faulthandler
writes to. Started by path with any Python from 3.10 on, in an environment in which this package is not installed: it is
loaded from the folder this file lies in.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
import sys
from pathlib import Path

PACKAGE = "torch_conformance"
ROLES = ("launcher", "oracle", "device")


def load_package() -> None:
    """Make ``torch_conformance`` importable from the folder above this file, without an entry in ``sys.path``.

    The interpreter put this file's own folder first in ``sys.path``; that entry goes, since a backend must not find
    our modules there.
    """
    here = Path(__file__).resolve().parent
    if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == here:
        del sys.path[0]
    root = here.parent
    spec = importlib.util.spec_from_file_location(PACKAGE, root / "__init__.py", submodule_search_locations=[str(root)])
    if spec is None or spec.loader is None:
        raise ImportError(f"got no package at {root}, wanted {PACKAGE}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


def main(arguments: list[str]) -> int:
    """Run one role until its socket ends.

    Returns:
        0 after a clean end of file, 2 for wrong usage.
    """
    if len(arguments) != 3 or arguments[0] not in ROLES or not (arguments[1] + arguments[2]).isdigit():
        usage = f"usage: bootstrap.py {'|'.join(ROLES)} SOCKET_FD STACKS_FD"
        print(f"{usage}; got {' '.join(arguments) or 'nothing'}", file=sys.stderr)
        return 2
    role, (control, stacks) = arguments[0], map(int, arguments[1:])
    load_package()
    isolation = importlib.import_module(f"{PACKAGE}.device.isolation")
    sock = socket.socket(fileno=isolation.private(control))
    isolation.isolate(os.getppid(), isolation.private(stacks))
    launcher = importlib.import_module(f"{PACKAGE}.device.launcher")
    return int(launcher.run(role, sock))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
