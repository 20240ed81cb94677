"""The loop of a role: one frame in, its answer out, and an exception is an answer too."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

from .. import frame
from .failure import error_message

Answer = Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]]


def serve(sock: socket.socket, answer: Answer) -> None:
    """Answer requests on ``sock`` until it ends.

    Args:
        sock: the role's socket.
        answer: from a message and its payload to the answer and its payload; what it raises is sent as an error.
    """
    while (received := frame.receive(sock)) is not None:
        message, payload = received
        try:
            reply = (load(message["load"]), b"") if "load" in message else answer(message, payload)
        except Exception as error:
            reply = ({"error": error_message(error)}, b"")
        frame.send(sock, *reply)


def load(name: str) -> dict[str, Any]:
    """Import what ``{"load": NAME}`` names, so that later forks have it for nothing.

    Raises:
        ValueError: when the name is not known.
    """
    if name != "op_db":
        raise ValueError(f"got {name!r} to load, wanted op_db")
    begin = time.monotonic()
    from . import internals

    internals.op_infos()
    return {"loaded": name, "seconds": round(time.monotonic() - begin, 3)}
