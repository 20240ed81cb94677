"""The launcher: it says it is ready, forks, reaps, and nothing outlives it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from torch_conformance.codec import to_json

from .conftest import CPU, Launcher


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").split()[2] != "Z"
    except FileNotFoundError:
        return False


def _dies(pid: int) -> bool:
    for _ in range(250):
        if not _alive(pid):
            return True
        time.sleep(0.02)
    return False


def test_the_first_frame_describes_torch_and_its_packages(bare_launcher: Launcher) -> None:
    ready = bare_launcher.first["ready"]
    assert ready["torch"].startswith("2.")
    assert Path(ready["path"]).is_dir()
    assert "numpy" in ready["packages"]


def test_a_device_that_is_killed_is_reaped_with_its_signal(bare_launcher: Launcher) -> None:
    role = bare_launcher.device()
    os.kill(role.pid, signal.SIGSEGV)
    assert bare_launcher.status(role) == -signal.SIGSEGV


def test_a_role_ends_with_0_when_its_socket_ends(bare_launcher: Launcher) -> None:
    role = bare_launcher.device()
    role.close()
    assert bare_launcher.status(role) == 0


def test_the_launcher_goes_on_after_a_request_it_does_not_know(bare_launcher: Launcher) -> None:
    assert "wanted a fork" in bare_launcher.ask({"nonsense": 1})["error"]["message"]
    assert bare_launcher.ask({"reap": 1})["error"]["type"] == "ValueError"
    assert bare_launcher.device().pid > 0


def test_closing_the_control_socket_kills_the_children(bare_launcher: Launcher) -> None:
    role = bare_launcher.device()
    bare_launcher.control.close()
    assert bare_launcher.process.wait(timeout=20) == 0
    assert _dies(role.pid)


def test_children_die_with_a_launcher_that_is_killed(bare_launcher: Launcher) -> None:
    role = bare_launcher.device()
    bare_launcher.process.kill()
    assert _dies(role.pid)


def test_a_role_leads_a_process_group_of_its_own(bare_launcher: Launcher) -> None:
    role = bare_launcher.device()
    assert os.getpgid(role.pid) == role.pid
    assert os.getpgid(role.pid) != os.getpgid(bare_launcher.process.pid)


def test_sigusr1_writes_the_stacks_of_a_role_and_leaves_it_alive(bare_launcher: Launcher) -> None:
    role = bare_launcher.device()
    os.kill(role.pid, signal.SIGUSR1)
    written = b""
    while b"most recent call first" not in written:  # it arrives in pieces; the end of the pipe would be an error
        piece = os.read(role.stacks, 1 << 16)
        assert piece, written
        written += piece
    assert role.ask({"list": {"families": ["registration"]}})[0]["cases"]


def test_a_backend_that_does_not_exist_is_an_error_that_names_it(bare_launcher: Launcher) -> None:
    role = bare_launcher.fork("device")
    spec = {**to_json(CPU), "name": "ghost", "device": "ghost", "module": "no_such_module"}
    error = role.ask({"start": spec})[0]["error"]
    assert error["type"] == "StartError"
    assert "no_such_module" in error["message"]


def test_a_request_before_start_is_refused(bare_launcher: Launcher) -> None:
    assert "start first" in bare_launcher.fork("device").ask({"list": {"families": None}})[0]["error"]["message"]


def test_an_unknown_fault_is_an_error_with_the_nearest_name(bare_launcher: Launcher) -> None:
    role = bare_launcher.fork("device")
    spec = {**to_json(CPU), "env": {"TORCH_CONFORMANCE_FAULTS": "mul_off_by_an_ulp"}}
    assert "mul_off_by_ulp" in role.ask({"start": spec})[0]["error"]["message"]
