"""Frames: how the processes of a run talk over stream sockets.

A frame is two big-endian unsigned 32-bit lengths, a JSON object of the first length, and raw bytes of the second.
Standard library only and Python 3.10 clean: the parent and the device processes both import this module.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

HEADER = struct.Struct(">II")
LIMIT = 0xFFFFFFFF
"""Largest length that a header can carry, in bytes."""


class FrameError(RuntimeError):
    """What arrived is not a frame, or the other side went away in the middle of one."""


def send(sock: socket.socket, message: dict[str, Any], payload: bytes = b"", fds: tuple[int, ...] = ()) -> None:
    """Write one frame; file descriptors ``fds`` travel with its first byte (Unix sockets only).

    Raises:
        FrameError: when the payload is larger than a header can say.
        OSError: when the other side is gone.
    """
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    if len(payload) > LIMIT or len(text) > LIMIT:
        raise FrameError(f"got a frame of {len(text)} + {len(payload)} bytes, wanted at most {LIMIT} in each part")
    head = HEADER.pack(len(text), len(payload)) + text
    if fds:
        sent = socket.send_fds(sock, [head], list(fds))
        head = head[sent:]
    sock.sendall(head)
    if payload:
        sock.sendall(payload)


def receive(sock: socket.socket) -> tuple[dict[str, Any], bytes] | None:
    """Read one frame; None at a clean end of file.

    Raises:
        FrameError: at an end of file inside a frame, or when the JSON part is no object.
    """
    head = _exactly(sock, HEADER.size, at_start=True)
    return None if head is None else _body(sock, head)


def receive_with_fds(sock: socket.socket, limit: int) -> tuple[dict[str, Any], bytes, list[int]] | None:
    """Read one frame and up to ``limit`` file descriptors that came with its first byte; None at a clean end of file.

    Raises:
        FrameError: as `receive`.
    """
    head, fds, _flags, _address = socket.recv_fds(sock, HEADER.size, limit)
    if not head:
        return None
    if len(head) < HEADER.size:
        rest = _exactly(sock, HEADER.size - len(head), at_start=False)
        assert rest is not None
        head += rest
    message, payload = _body(sock, head)
    return message, payload, list(fds)


def _body(sock: socket.socket, head: bytes) -> tuple[dict[str, Any], bytes]:
    text_length, payload_length = HEADER.unpack(head)
    text = _exactly(sock, text_length, at_start=False)
    payload = _exactly(sock, payload_length, at_start=False)
    assert text is not None
    assert payload is not None
    try:
        message = json.loads(text)
    except ValueError as error:
        raise FrameError(f"got a frame whose first part is not JSON ({error}): {text[:80]!r}") from error
    if not isinstance(message, dict):
        raise FrameError(f"got a frame with {type(message).__name__} as its first part, wanted an object")
    return message, payload


def _exactly(sock: socket.socket, length: int, *, at_start: bool) -> bytes | None:
    if length == 0:
        return b""
    chunks = bytearray(length)
    view = memoryview(chunks)
    done = 0
    while done < length:
        got = sock.recv_into(view[done:])
        if got == 0:
            if at_start and done == 0:
                return None
            raise FrameError(f"got an end of file after {done} bytes, wanted {length}: the other process went away")
        done += got
    return bytes(chunks)
