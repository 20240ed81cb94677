"""A launcher with its roles, driven over sockets as a worker drives them; torch is imported in the children only."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch_conformance
from torch_conformance import frame
from torch_conformance.backend import BackendSpec
from torch_conformance.case import Case, CaseId
from torch_conformance.codec import from_json, to_json
from torch_conformance.outcome import FailedSample, Outcome

BOOTSTRAP = Path(torch_conformance.__file__).parent / "device" / "bootstrap.py"
CPU = BackendSpec(name="cpu", device="cpu")


class Role:
    """One forked process and its socket."""

    def __init__(self, sock: socket.socket, pid: int, stacks: int) -> None:
        self.sock = sock
        self.pid = pid
        self.stacks = stacks
        self.dead = False
        sock.settimeout(60)

    def ask(self, message: dict[str, Any], payload: bytes = b"") -> tuple[dict[str, Any], bytes]:
        frame.send(self.sock, message, payload)
        while True:
            received = frame.receive(self.sock)
            if received is None:
                raise EOFError(f"process {self.pid} ended")
            if "at" not in received[0]:
                return received

    def clause(self, case: Case) -> Outcome:
        return from_json(Outcome, self.ask({"clause": to_json(case), "seed": 0})[0]["outcome"])

    def close(self) -> None:
        self.sock.close()
        os.close(self.stacks)


class Launcher:
    """A launcher process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with Path(os.devnull).open("wb") as null:
            self.process = subprocess.Popen(
                [sys.executable, str(BOOTSTRAP), "launcher", str(theirs.fileno()), str(null.fileno())],
                pass_fds=[theirs.fileno(), null.fileno()],
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        theirs.close()
        self.control = ours
        self.control.settimeout(120)
        received = frame.receive(ours)
        assert received is not None
        self.first = received[0]

    def ask(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> dict[str, Any]:
        frame.send(self.control, message, b"", fds)
        received = frame.receive(self.control)
        assert received is not None
        return received[0]

    def fork(self, role: str) -> Role:
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        with Path(os.devnull).open("wb") as null:
            pid = self.ask({"fork": role}, (theirs.fileno(), null.fileno(), write))["pid"]
        theirs.close()
        os.close(write)
        return Role(ours, pid, read)

    def device(self, spec: BackendSpec = CPU, faults: str = "") -> Role:
        role = self.fork("device")
        if faults:
            spec = dataclasses.replace(spec, env={**spec.env, "TORCH_CONFORMANCE_FAULTS": faults})
        answer = role.ask({"start": to_json(spec)})[0]
        assert "started" in answer, answer
        return role

    def status(self, role: Role) -> int:
        """The exit status of a role, waited for."""
        for _ in range(200):
            status = self.ask({"reap": role.pid})["status"]
            if status is not None:
                return int(status)
            time.sleep(0.02)
        raise TimeoutError(f"process {role.pid} did not end")

    def close(self) -> None:
        self.control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=20)
        self.process.kill()


@dataclasses.dataclass
class Ran:
    """What a whole operator case gave."""

    planned: int
    run: int
    failed: list[FailedSample]
    digests: list[str]
    indices: list[int]
    bitwise_equal: int


def run_case(oracle: Role, device: Role, identifier: str, profile: str = "core", seed: int = 0) -> Ran:
    """Run one operator case through an oracle and a device process."""
    case = to_json(Case(CaseId.parse(identifier), sampled=True))
    opened = oracle.ask({"open": case, "seed": seed, "profile": profile, "only": None})[0]
    assert opened == {"opened": True}, opened
    ran = Ran(0, 0, [], [], [], 0)
    more = True
    while more:
        batch, samples = oracle.ask({"next": True})
        assert "indices" in batch, batch
        more, indices = batch["more"], batch["indices"]
        ran.indices += indices
        ran.digests += batch["digests"]
        if indices:
            answer, results = device.ask({"samples": case, "seed": seed, "indices": indices}, samples)
            assert "results" in answer, answer
            judged = oracle.ask({"judge": indices}, results)[0]
            assert "failed" in judged, judged
            ran.run += len(indices)
            ran.failed += [from_json(FailedSample, item) for item in judged["failed"]]
            ran.bitwise_equal += judged["bitwise_equal"]
    ran.planned = oracle.ask({"close": True})[0]["planned"]
    return ran


@pytest.fixture
def bare_launcher() -> Iterator[Launcher]:
    """A launcher of its own, for tests that harm it."""
    launcher = Launcher()
    yield launcher
    launcher.close()


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """One launcher for the session, with the operator database loaded."""
    launcher = Launcher()
    assert launcher.ask({"load": "op_db"})["loaded"] == "op_db"
    yield launcher
    launcher.close()


@pytest.fixture(scope="session")
def oracle(launcher: Launcher) -> Iterator[Role]:
    role = launcher.fork("oracle")
    yield role
    role.close()


@pytest.fixture(scope="session")
def cpu(launcher: Launcher) -> Iterator[Role]:
    role = launcher.device()
    yield role
    role.close()
