"""What every process of a run does to itself first: it dies with its parent and can dump its stacks."""

from __future__ import annotations

import ctypes
import faulthandler
import fcntl
import io
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_FIRST_PRIVATE = 64
"""Private descriptors start here, far from what a test opens or closes."""


def private(descriptor: int) -> int:
    """Move an inherited descriptor out of the way; what a test starts does not inherit it."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
    if descriptor > 2:
        os.close(descriptor)
    return moved


def isolate(parent: int, stacks: int, output: int = -1) -> None:
    """Make this process safe to be killed, dumped and left alone.

    It leads a process group of its own (a Ctrl-C at the terminal reaches the worker only, and the worker can kill the
    group), is killed when ``parent`` dies, reads no input, writes its output line by line, and writes all Python
    stacks to ``stacks`` when it gets a fatal signal or SIGUSR1.

    Args:
        parent: the process id that must still be this process's parent; the process exits when it is not.
        stacks: descriptor for faulthandler.
        output: descriptor to put on 1 and 2, or -1 to keep what is there.
    """
    die_with_parent(parent)
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if output >= 0:
        os.dup2(output, 1)
        os.dup2(output, 2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable(file=stacks, all_threads=True)
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True, chain=False)


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies (Linux; elsewhere an end of file has to do).

    Args:
        parent: as in `isolate`; it may have died before the kernel was asked.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
