"""The oracle role: makes samples, computes the reference on the CPU, and judges. The backend is never imported here."""

from __future__ import annotations

import pickle
import socket
import warnings
from typing import Any

from ..case import Case
from ..codec import from_json, to_json
from .oracle import OpenCase
from .serving import serve as serve_requests


def serve(sock: socket.socket) -> None:
    """Answer the worker until the socket ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        serve_requests(sock, _OracleRole().answer)


class _OracleRole:
    def __init__(self) -> None:
        self.open: OpenCase | None = None

    def answer(self, message: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
        try:
            return self._answer(message, payload)
        except Exception:
            self.open = None  # what it knew of the case cannot be trusted any more
            raise

    def _answer(self, message: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
        if "open" in message:
            only = message.get("only")
            self.open = OpenCase(
                from_json(Case, message["open"]),
                int(message.get("seed", 0)),
                message.get("profile", "full"),
                None if only is None else frozenset(int(index) for index in only),
            )
            return {"opened": True}, b""
        if self.open is None:
            raise ValueError(f"got {sorted(message)} while no case is open, wanted open first")
        if "next" in message:
            samples, more = self.open.next_batch()
            answer = {
                "indices": [sample.index for sample in samples],
                "digests": [sample.digest for sample in samples],
                "more": more,
            }
            return answer, pickle.dumps(samples, pickle.HIGHEST_PROTOCOL)
        if "judge" in message:
            indices = [int(index) for index in message["judge"]]
            judged = self.open.judge(indices, pickle.loads(payload))
            return {
                "failed": to_json(judged.failed),
                "bitwise_equal": judged.bitwise_equal,
                "traceback": judged.traceback,
            }, b""
        if "close" in message:
            planned, observation = self.open.close()
            self.open = None
            return {"planned": planned, "observation": to_json(observation)}, b""
        raise ValueError(f"got {sorted(message)}, wanted open, next, judge or close")
