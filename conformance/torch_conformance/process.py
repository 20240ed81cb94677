"""The processes beside torch: a launcher, and the oracle and device processes that it forks or that are spawned."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .backend import BackendSpec
from .channel import Channel, DeadlinePassed, Message, PeerGone, Tail
from .errors import BackendStartError
from .interpreter import environment, program

BOOTSTRAP = Path(__file__).parent / "device" / "bootstrap.py"
START_TIMEOUT_S = 300.0
"""For importing torch, op_db or a backend: minutes on a cold, busy machine."""
REAP_TIMEOUT_S = 10.0
DUMP_S = 0.5
"""How long a hung process is given to write its stacks."""
SMALLEST_TORCH = (2, 13)


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process went away: a status as in `subprocess.Popen.returncode`."""

    status: int

    def __str__(self) -> str:
        if self.status < 0:
            with contextlib.suppress(ValueError):
                return f"signal {signal.Signals(-self.status).name}"
            return f"signal {-self.status}"
        return f"exit {self.status}"


class Role:
    """An oracle or a device process, however it was started."""

    def __init__(self, channel: Channel, pid: int, output: Tail, stacks: Tail, starter: Starter) -> None:
        self.channel = channel
        self.output = output
        self.stacks = stacks
        self._pid = pid
        self._starter = starter
        self._exit: Exit | None = None

    def wait(self, seconds: float = REAP_TIMEOUT_S) -> Exit:
        """Reap the process, killing its group when it is still there after ``seconds``."""
        if self._exit is None:
            self._exit = self._poll(seconds)
            if self._exit is None:
                self.kill()
                self._exit = self._poll(REAP_TIMEOUT_S) or Exit(-signal.SIGKILL)
            # What it started itself must not outlive it.
            _signal_group(self._pid, signal.SIGKILL)
            self.channel.drain(DUMP_S)
        return self._exit

    @property
    def died(self) -> bool:
        """Whether the process is known to have gone away."""
        return self._exit is not None

    def stop_hung(self) -> Exit:
        """Have all Python stacks written, then kill the process group and reap it.

        A process that went away while something it started held its socket open did not hang: its own exit is returned.
        """
        status = self._starter.status(self._pid)
        if status is not None:
            self._exit = Exit(status)
            _signal_group(self._pid, signal.SIGKILL)
            return self._exit
        _signal(self._pid, signal.SIGUSR1)
        self.channel.drain(DUMP_S)
        self.kill()
        return self.wait()

    def kill(self) -> None:
        """Kill the process and what it started."""
        _signal_group(self._pid, signal.SIGKILL)
        _signal(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process: it exits when its socket ends, and is killed when it does not."""
        self.channel.close_socket()
        self.wait(2.0)
        self.channel.close()
        self.output.close()
        self.stacks.close()

    def _poll(self, seconds: float) -> Exit | None:
        end = time.monotonic() + seconds
        pause = 0.001
        while True:
            status = self._starter.status(self._pid)
            if status is not None:
                return Exit(status)
            if time.monotonic() >= end:
                return None
            self.channel.drain(pause)
            time.sleep(pause)
            pause = min(pause * 2, 0.05)


class Starter:
    """Starts the processes of one backend: a launcher that forks them, or new interpreters."""

    def __init__(self, spec: BackendSpec, faults: tuple[str, ...] = ()) -> None:
        self._spec = spec
        self._program = program(spec)
        self._environment = environment(spec, faults)
        self._launcher: _Spawned | None = None
        self._spawned: dict[int, _Spawned] = {}
        self._op_db = False
        self.ready: Message = {}
        """What the first process said of its torch."""

    def start(self) -> Message:
        """Import torch, in the launcher or (where each role is spawned) in a process that only answers that.

        Raises:
            BackendStartError: when torch is absent, broken or too old.
        """
        if not self.ready:
            if self._spec.start == "fork":
                self._launcher = _Spawned(self, "launcher")
                self._launcher.hello()
            else:
                first = _Spawned(self, "device")
                first.hello()
                self._spawned[first.pid] = first
        return self.ready

    def load_op_db(self) -> None:
        """Have op_db imported before the next fork; a second call does nothing."""
        self.start()
        if self._launcher is not None and not self._op_db:
            self._launcher.load_op_db()
        self._op_db = True

    def role(self, name: str) -> Role:
        """Start an ``oracle`` or a ``device`` process.

        Raises:
            BackendStartError: when it does not start.
        """
        self.start()
        if self._launcher is None:
            return self._spawn(name)
        ours, theirs = socket.socketpair()
        with _pipe() as (output, output_end), _pipe() as (stacks, stacks_end):
            with theirs:
                answer = self._launcher.ask({"fork": name}, (theirs.fileno(), output_end, stacks_end))
            if "pid" not in answer:
                raise BackendStartError(f"{self._spec.name}: the launcher could not fork: {error_text(answer)}")
            tails = Tail(os.dup(output)), Tail(os.dup(stacks))
        return Role(Channel(ours, tails), int(answer["pid"]), *tails, self)

    def status(self, pid: int) -> int | None:
        """The status of a process that went away; None while it lives."""
        if pid in self._spawned:
            return self._spawned[pid].process.poll()
        if self._launcher is None:
            return -signal.SIGKILL
        try:
            answer = self._launcher.ask({"reap": pid})
        except BackendStartError:
            return -signal.SIGKILL  # with the launcher gone its children are, too
        status = answer.get("status")
        return None if status is None else int(status)

    def close(self) -> None:
        """End the launcher, which kills its children; and whatever was spawned."""
        for spawned in [*self._spawned.values(), *([self._launcher] if self._launcher else [])]:
            spawned.close()
        self._spawned.clear()
        self._launcher = None
        self.ready = {}
        self._op_db = False

    def _spawn(self, name: str) -> Role:
        idle = [item for item in self._spawned.values() if item.role_name == name and not item.used]
        spawned = idle[0] if idle else _Spawned(self, name)
        if not idle:
            spawned.hello()
            self._spawned[spawned.pid] = spawned
        spawned.used = True
        if self._op_db:
            spawned.load_op_db()
        return Role(spawned.channel, spawned.pid, spawned.output, spawned.stacks, self)


class _Spawned:
    """A new interpreter that runs bootstrap."""

    def __init__(self, starter: Starter, role: str) -> None:
        self._starter = starter
        self._backend = starter._spec.name
        self.role_name = role
        self.used = False
        ours, theirs = socket.socketpair()
        with theirs, _pipe() as (output, output_end), _pipe() as (stacks, stacks_end):
            command = [starter._program, str(BOOTSTRAP), role, str(theirs.fileno()), str(stacks_end)]
            try:
                self.process = subprocess.Popen(
                    command,
                    env=starter._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output_end,
                    stderr=output_end,
                    pass_fds=(theirs.fileno(), stacks_end),
                    process_group=0,
                )
            except OSError as error:
                ours.close()
                raise BackendStartError(f"{self._backend}: cannot start {command[0]}: {error}") from error
            self.output, self.stacks = Tail(os.dup(output)), Tail(os.dup(stacks))
        self.pid = self.process.pid
        self.channel = Channel(ours, (self.output, self.stacks))

    def hello(self) -> None:
        """Wait for the first frame and check the torch it names."""
        try:
            message, _ = self.channel.receive(time.monotonic() + START_TIMEOUT_S)
        except (PeerGone, DeadlinePassed) as error:
            raise self._failed(error) from error
        if "ready" not in message:
            text = error_text(message)
            self.close()
            raise BackendStartError(
                f"{self._backend}: torch could not be imported in {self._starter._program}: {text}. Install torch "
                f"{'.'.join(map(str, SMALLEST_TORCH))} or later, numpy and expecttest there, or name another "
                "interpreter with the key 'python' of the spec file."
            )
        ready: Message = message["ready"]
        version = str(ready.get("torch", ""))
        if _version(version) < SMALLEST_TORCH:
            self.close()
            raise BackendStartError(
                f"{self._backend}: got torch {version or 'of no version'} in {self._starter._program}, wanted "
                f"{'.'.join(map(str, SMALLEST_TORCH))} or later. Install a newer torch there, or name another "
                "interpreter with the key 'python' of the spec file."
            )
        self._starter.ready = ready

    def load_op_db(self) -> None:
        answer = self.ask({"load": "op_db"})
        if "loaded" not in answer:
            raise BackendStartError(
                f"{self._backend}: PyTorch's OpInfo database could not be imported in {self._starter._program}: "
                f"{error_text(answer)}. It needs numpy and expecttest beside torch."
            )

    def ask(self, message: Message, descriptors: tuple[int, ...] = ()) -> Message:
        try:
            answer, _ = self.channel.ask(message, descriptors=descriptors, deadline=time.monotonic() + START_TIMEOUT_S)
        except (PeerGone, DeadlinePassed) as error:
            raise self._failed(error) from error
        return answer

    def _failed(self, error: Exception) -> BackendStartError:
        hung = isinstance(error, DeadlinePassed)
        if hung:
            _signal(self.pid, signal.SIGUSR1)
            self.channel.drain(DUMP_S)
            _signal_group(self.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(REAP_TIMEOUT_S)
        self.channel.drain(DUMP_S)
        said = self.output.take().strip().splitlines()
        how = f"did not answer for {START_TIMEOUT_S:.0f} s" if hung else f"went away ({Exit(self.process.poll() or 0)})"
        self.close()
        return BackendStartError(
            f"{self._backend}: the {self.role_name} process in {self._starter._program} {how}"
            f"{': ' + said[-1] if said else ' without a word'}."
        )

    def close(self) -> None:
        self.channel.close_socket()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2.0)
        _signal_group(self.pid, signal.SIGKILL)
        self.process.wait()
        self.channel.close()
        self.output.close()
        self.stacks.close()


def error_text(message: Message) -> str:
    """One line for an ``error`` answer."""
    error = message.get("error")
    if not isinstance(error, dict):
        return f"got the answer {str(message)[:200]}"
    text = str(error.get("message", "")).strip()
    kind = str(error.get("type", "error"))
    if kind == "StartError" and text:  # its text is written for the user
        return text
    return f"{kind}: {text}" if text else kind


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose two ends are closed at the end of the block: keep a duplicate of what should live."""
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        os.close(reading)
        os.close(writing)


def _version(text: str) -> tuple[int, int]:
    parts = text.split("+")[0].split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (IndexError, ValueError):
        return (0, 0)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
