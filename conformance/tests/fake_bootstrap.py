"""Stands in for ``device/bootstrap.py``: the messages without torch, with cases that end as their subject says.

A sampled case has five samples unless its subject says otherwise; what happens at one of them is written in the
subject: ``crash-at-2``, ``hang-at-2``, ``exit-at-2``, ``mismatch-at-2``, ``crash-from-1``.
"""

import faulthandler
import os
import signal
import socket
import sys
import time
from typing import Any

from torch_conformance.frame import receive, receive_with_fds, send

SAMPLES = 5


def case(subject: str, *, sampled: bool = False, profile: str = "smoke", **fields: Any) -> dict[str, Any]:
    identifier = f"fake/{subject}/behaves/{'float32' if sampled else '-'}/-"
    return {"id": identifier, "sampled": sampled, "profile": profile, **fields}


CASES = [
    case("pass"),
    case("pass-also", cost=0.5),
    case("mismatch"),
    case("segfault"),
    case("hang", timeout_s=0.5),
    case("leave"),
    case("flood"),
    case("litter"),
    case("needs-pass", requires=["fake/pass/behaves/-/-"]),
    case("needs-segfault", requires=["fake/segfault/behaves/-/-"]),
    case("needs-blocked", requires=["fake/needs-segfault/behaves/-/-"]),
    case("needs-two-devices", devices=2),
    case("pid"),
    case("slow", profile="full"),
    case("samples-pass", sampled=True),
    case("crash-at-2", sampled=True),
    case("exit-at-0", sampled=True),
    case("hang-at-4", sampled=True, timeout_s=0.5),
    case("mismatch-at-3", sampled=True),
    case("crash-from-1", sampled=True),
    case("oracle-dies", sampled=True),
    case("none", sampled=True),
]


def passed(identifier: str, **fields: Any) -> dict[str, Any]:
    return {"outcome": {"id": identifier, "kind": "PASS", **fields}}


def clause(identifier: str) -> dict[str, Any]:
    subject = identifier.split("/")[1]
    if subject == "mismatch":
        return passed(identifier, kind="MISMATCH", message="got 1, wanted 2")
    if subject == "segfault":
        os.write(1, b"about to touch address 16\n")
        os.kill(os.getpid(), signal.SIGSEGV)
    if subject == "hang":
        while True:
            time.sleep(1)
    if subject == "leave":
        os._exit(0)
    if subject == "flood":
        for _ in range(200):
            os.write(1, b"y" * 65536)
    if subject == "litter":
        return passed(identifier, observation={"state_changed": ["default dtype"]})
    if subject == "pid":
        return passed(identifier, kind="MISMATCH", message=str(os.getpid()))
    if subject == "slow":
        time.sleep(float(os.environ.get("FAKE_SLOW_S", "0")))
    return passed(identifier)


def happens(subject: str, index: int) -> str:
    word, _, rest = subject.partition("-at-")
    if rest and int(rest) == index:
        return word
    word, _, rest = subject.partition("-from-")
    return word if rest and index >= int(rest) else ""


def device(sock: socket.socket) -> None:
    while (frame := receive(sock)) is not None:
        message, _ = frame
        if "load" in message:
            send(sock, {"loaded": "op_db", "seconds": 0.0})
        elif "start" in message:
            if os.environ.get("FAKE_START") == "fails":
                send(
                    sock,
                    {"error": {"type": "StartError", "message": "the chip is on fire; put it out", "traceback": ""}},
                )
                continue
            if os.environ.get("FAKE_START") == "dies":
                os.write(2, b"no firmware\n")
                os._exit(7)
            send(sock, {"started": {"device": "fake", "count": 1, "name": "Fake 1", "build": "b1"}})
        elif "list" in message:
            send(sock, {"cases": CASES})
        elif "probe" in message:
            send(sock, {"probe": {"capabilities": {"streams": True}}})
        elif "clause" in message:
            send(sock, clause(message["clause"]["id"]))
        else:
            subject = message["samples"]["id"].split("/")[1]
            for index in message["indices"]:
                send(sock, {"at": index})
                event = happens(subject, index)
                if event == "crash":
                    os.kill(os.getpid(), signal.SIGSEGV)
                if event == "exit":
                    os._exit(3)
                while event == "hang":
                    time.sleep(1)
            send(sock, {"results": len(message["indices"])}, b"results")


def oracle(sock: socket.socket) -> None:
    subject = ""
    while (frame := receive(sock)) is not None:
        message, payload = frame
        if "load" in message:
            send(sock, {"loaded": "op_db", "seconds": 0.0})
        elif "open" in message:
            subject = message["open"]["id"].split("/")[1]
            send(sock, {"opened": True})
        elif "next" in message:
            if subject == "oracle-dies":
                os._exit(9)
            indices = [] if subject == "none" else list(range(SAMPLES))
            send(sock, {"indices": indices, "digests": [f"d{index}" for index in indices], "more": False}, b"batch")
        elif "judge" in message:
            assert payload == b"results"
            failed = [
                {"index": index, "digest": f"d{index}", "kind": "MISMATCH", "message": "got 1, wanted 2"}
                for index in message["judge"]
                if happens(subject, index) == "mismatch"
            ]
            send(sock, {"failed": failed, "bitwise_equal": len(message["judge"]) - len(failed), "traceback": ""})
        else:
            send(sock, {"planned": 0 if subject == "none" else SAMPLES, "observation": {}})


def launcher(sock: socket.socket) -> None:
    children: list[int] = []
    while (frame := receive_with_fds(sock, 3)) is not None:
        message, _, descriptors = frame
        if "fork" in message:
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)
                sock.close()
                control, output, stacks = descriptors
                os.dup2(output, 1)
                os.dup2(output, 2)
                faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
                (device if message["fork"] == "device" else oracle)(socket.socket(fileno=control))
                os._exit(0)
            children.append(pid)
            for descriptor in descriptors:
                os.close(descriptor)
            send(sock, {"pid": pid})
        elif "reap" in message:
            found, status = os.waitpid(message["reap"], os.WNOHANG)
            send(sock, {"status": os.waitstatus_to_exitcode(status) if found else None})
        else:
            send(sock, {"loaded": "op_db", "seconds": 0.0})
    for pid in children:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def main() -> None:
    sock = socket.socket(fileno=int(sys.argv[2]))
    version = os.environ.get("FAKE_TORCH", "2.13.0+cpu")
    if version == "broken":
        send(sock, {"error": {"type": "ImportError", "message": "libtorch_cpu.so: no such file", "traceback": ""}})
        return
    ready = {"torch": version, "git": "0" * 40, "python": "3.11.7", "path": "/torch", "packages": {}, "seconds": 0.0}
    send(sock, {"ready": ready})
    {"launcher": launcher, "device": device, "oracle": oracle}[sys.argv[1]](sock)


if __name__ == "__main__":
    main()
