"""The device role: starts the backend, lists cases, runs clauses and samples. It judges no number."""

from __future__ import annotations

import gc
import pickle
import socket
import time
import traceback
from typing import Any

import torch

from .. import frame
from ..backend import BackendSpec
from ..case import Case
from ..codec import from_json, to_json
from ..outcome import Kind, Observation, Outcome
from . import families, faults, state
from .clause import load_clauses
from .failure import Mismatch, Refused, SuiteError, summary
from .probe import probe
from .sample_role import run_samples
from .seeds import case_seed
from .serving import serve as serve_requests
from .target import Device, start


def serve(sock: socket.socket) -> None:
    """Answer the worker until the socket ends."""
    serve_requests(sock, _DeviceRole(sock).answer)


class _DeviceRole:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.device: Device | None = None

    def answer(self, message: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
        if "start" in message:
            self.device, started = start(from_json(BackendSpec, message["start"]))
            faults.switch(faults.names_from_environment(), self.device)
            return {"started": started}, b""
        device = self._started()
        if "probe" in message:
            return {"probe": {"capabilities": probe(device)}}, b""
        if "list" in message:
            cases = families.list_cases(device, message["list"].get("families"))
            return {"cases": to_json(cases)}, b""
        if "clause" in message:
            outcome = run_clause(device, from_json(Case, message["clause"]), int(message.get("seed", 0)))
            return {"outcome": to_json(outcome)}, b""
        if "samples" in message:
            case = from_json(Case, message["samples"])
            wanted = {int(index) for index in message["indices"]}
            samples = [sample for sample in pickle.loads(payload) if sample.index in wanted]
            results = run_samples(device, case, int(message.get("seed", 0)), samples, self._at)
            return {"results": len(results)}, pickle.dumps(results, pickle.HIGHEST_PROTOCOL)
        raise ValueError(f"got {sorted(message)}, wanted start, probe, list, clause or samples")

    def _at(self, index: int) -> None:
        frame.send(self.sock, {"at": index})

    def _started(self) -> Device:
        if self.device is None:
            raise ValueError("got a request before start, wanted start first")
        return self.device


def run_clause(device: Device, case: Case, seed: int) -> Outcome:
    """Run one clause and say what happened. An exception is an outcome, never an error of the process."""
    identifier = str(case.id)
    entry = load_clauses().get(identifier)
    if entry is None:
        return Outcome(
            identifier, Kind.ORACLE_BROKEN, message=f"no clause has the id {identifier}; list the cases again"
        )
    missing = [name for name in entry.case.needs if not device.claims(name)]
    if missing:
        text = (
            f"the backend does not claim {', '.join(missing)}; add it to `claims` of its spec file to have this checked"
        )
        return Outcome(identifier, Kind.REFUSED, message=text)
    _seed(case_seed(identifier, seed))
    before = state.snapshot(device)
    _reset_peak(device)
    begin = time.perf_counter()
    kind, message, trace = Kind.PASS, "", ""
    try:
        entry.check(device)
    except Mismatch as error:
        kind, message, trace = Kind.MISMATCH, str(error), _trace(error)
    except Refused as error:
        kind, message, trace = Kind.REFUSED, str(error), _trace(error)
    except SuiteError as error:
        kind, message, trace = Kind.ORACLE_BROKEN, str(error), _trace(error)
    except Exception as error:
        kind, message, trace = Kind.RAISED, summary(error), _trace(error)
    seconds = time.perf_counter() - begin
    gc.collect(0)
    return Outcome(
        identifier,
        kind,
        seconds=round(seconds, 6),
        message=message,
        traceback=trace,
        observation=Observation(peak_bytes=_peak(device), state_changed=state.changed(before, state.snapshot(device))),
    )


def _seed(seed: int) -> None:
    """Seed Python and torch, every device included, without loading the operator database."""
    import random

    random.seed(seed)
    torch.manual_seed(seed)


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def _reset_peak(device: Device) -> None:
    if device.claims("memory_stats") and device.is_accelerator:
        torch.accelerator.reset_peak_memory_stats()


def _peak(device: Device) -> int:
    if device.claims("memory_stats") and device.is_accelerator:
        return int(torch.accelerator.max_memory_allocated())
    return -1
