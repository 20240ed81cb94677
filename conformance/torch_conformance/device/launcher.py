"""The launcher: imports torch once, then only forks and reaps. Also the start of a role that is spawned directly."""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.metadata
import os
import platform
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Protocol

from .. import frame
from . import isolation
from .failure import error_message
from .serving import load

DISTRIBUTIONS = ("numpy", "scipy", "expecttest")
"""Distributions beside torch that decide which cases and samples exist."""


class _Role(Protocol):
    def serve(self, sock: socket.socket) -> None: ...


def run(role: str, sock: socket.socket) -> int:
    """Import torch, say so on ``sock``, and serve the role until the end of file.

    Args:
        role: ``launcher``, ``oracle`` or ``device``.
        sock: control socket of the launcher, or the role's own.

    Returns:
        the exit code: 0, or 1 when torch could not be imported (the error was sent).
    """
    begin = time.monotonic()
    # The oracle must see torch without a backend: nothing registers itself on import. The device role imports its own.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    try:
        ready = import_torch()
    except BaseException as error:
        frame.send(sock, {"error": error_message(error)})
        return 1
    ready["seconds"] = round(time.monotonic() - begin, 3)
    frame.send(sock, {"ready": ready})
    if role == "launcher":
        Launcher(sock).serve()
    else:
        role_module(role).serve(sock)
    return 0


def import_torch() -> dict[str, Any]:
    """Import torch, single-threaded, and describe it."""
    import torch

    # One thread a process: workers share the machine, sums keep one order, and a fork copies no thread pool.
    torch.set_num_threads(1)
    packages = {}
    for name in DISTRIBUTIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            packages[name] = importlib.metadata.version(name)
    return {
        "torch": torch.__version__,
        "git": torch.version.git_version,
        "path": str(Path(torch.__file__).resolve().parent),
        "python": platform.python_version(),
        "packages": packages,
    }


def role_module(role: str) -> _Role:
    """The module that serves ``oracle`` or ``device``."""
    module: Any = importlib.import_module(f"..{role}_role", __name__)
    return module


class Launcher:
    """Serves the control socket: forks, reaps, and kills what it forked at the end of file."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.children: dict[int, int | None] = {}

    def serve(self) -> None:
        """Answer requests until the worker closes the control socket."""
        try:
            while (received := frame.receive_with_fds(self.control, 3)) is not None:
                message, _payload, fds = received
                try:
                    answer = self._answer(message, fds)
                except Exception as error:
                    answer = {"error": error_message(error)}
                finally:
                    for descriptor in fds:
                        os.close(descriptor)
                frame.send(self.control, answer)
        finally:
            self._kill_all()

    def _answer(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        if "fork" in message:
            role = message["fork"]
            if role not in ("oracle", "device") or len(fds) != 3:
                raise ValueError(
                    f"got fork {role!r} with {len(fds)} descriptors, wanted oracle or device and socket, output, stacks"
                )
            return {"pid": self._fork(role, fds)}
        if "reap" in message:
            return {"status": self._reap(int(message["reap"]))}
        if "load" in message:
            return load(message["load"])
        raise ValueError(f"got {sorted(message)}, wanted a fork, a reap or a load")

    def _fork(self, role: str, fds: list[int]) -> int:
        launcher = os.getpid()
        # What is imported stays: no collection in a child walks through it, or copies its pages by doing so.
        gc.freeze()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            # Both sides set the group, so that there is no moment at which the child has none.
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.setpgid(pid, pid)
            self.children[pid] = None
            return pid
        status = 1
        try:
            self.control.close()
            control, output, stacks = fds
            sock = socket.socket(fileno=isolation.private(control))
            isolation.isolate(launcher, isolation.private(stacks), output)
            os.close(output)
            role_module(role).serve(sock)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Not sys.exit: the handlers and buffers of the launcher are not this process's to run.
            os._exit(status)

    def _reap(self, pid: int) -> int | None:
        if pid not in self.children:
            raise ValueError(f"got {pid} to reap, wanted one of {sorted(self.children)}")
        if self.children[pid] is None:
            got, status = os.waitpid(pid, os.WNOHANG)
            if got == 0:
                return None
            self.children[pid] = os.waitstatus_to_exitcode(status)
        return self.children[pid]

    def _kill_all(self) -> None:
        for pid, status in self.children.items():
            if status is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
