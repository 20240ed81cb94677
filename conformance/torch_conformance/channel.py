"""The worker's end of a socket to a process: frames with deadlines, while the pipes of the process are drained.

The peer may flood its stdout while we wait for an answer, or before it has read all of our request; so sending,
receiving and draining happen in one loop and none of them can block the others.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import selectors
import socket
import time
from collections.abc import Sequence
from typing import Any

from .frame import HEADER

TAIL_BYTES = 64 * 1024
_CHUNK = 1 << 18
_LONGEST_WAIT_S = 0.5

Message = dict[str, Any]


class PeerGone(Exception):
    """The other end of the socket is closed: the process went away."""


class DeadlinePassed(Exception):
    """No whole frame came before the deadline."""


class Tail:
    """The last 64 KiB of what a process wrote to a pipe."""

    def __init__(self, descriptor: int) -> None:
        """Take over the reading end ``descriptor``; it is closed by `close`."""
        self.descriptor = descriptor
        self._kept = bytearray()
        os.set_blocking(descriptor, False)

    def read(self, limit: int = 1 << 20) -> bool:
        """Read what is there, at most about ``limit`` bytes; False when the writing end is closed by all."""
        seen = 0
        while seen < limit:
            try:
                data = os.read(self.descriptor, _CHUNK)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            seen += len(data)
            self._kept += data
            if len(self._kept) > 2 * TAIL_BYTES:
                del self._kept[:-TAIL_BYTES]
        return True

    def take(self) -> str:
        """What was kept since the last call, as text."""
        text = bytes(self._kept[-TAIL_BYTES:]).decode("utf-8", errors="replace")
        self._kept.clear()
        return text

    def close(self) -> None:
        """Close the descriptor; calling it again does nothing."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Channel:
    """One end of a socket pair to a process, with the pipes of that process."""

    def __init__(self, end: socket.socket, tails: Sequence[Tail] = ()) -> None:
        """Take over ``end``; ``tails`` are drained whenever the channel waits."""
        self._socket = end
        self._socket.setblocking(False)
        self._received = bytearray()
        self._selector = selectors.DefaultSelector()
        self._selector.register(end, selectors.EVENT_READ)
        self._open_tails = [tail for tail in tails if tail.descriptor >= 0]
        for tail in self._open_tails:
            self._selector.register(tail.descriptor, selectors.EVENT_READ, tail)

    def send(
        self, message: Message, payload: bytes = b"", *, descriptors: Sequence[int] = (), deadline: float | None = None
    ) -> None:
        """Send one frame; ``descriptors`` travel with its first bytes.

        Raises:
            PeerGone: when the process went away.
            DeadlinePassed: when it did not take the frame by ``deadline`` (`time.monotonic`).
        """
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
        head = HEADER.pack(len(text), len(payload)) + text
        self._selector.modify(self._socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
        try:
            for part in (head, payload):
                left = memoryview(part)
                while left:
                    try:
                        if descriptors:
                            rights = array.array("i", descriptors)
                            sent = self._socket.sendmsg([left], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
                            descriptors = ()
                        else:
                            sent = self._socket.send(left)
                    except BlockingIOError:
                        self._wait(deadline)
                        continue
                    except OSError as error:
                        raise PeerGone from error
                    left = left[sent:]
        finally:
            self._selector.modify(self._socket, selectors.EVENT_READ)

    def receive(self, deadline: float | None = None) -> tuple[Message, bytes]:
        """Wait for one frame.

        Raises:
            PeerGone: when the process went away before a whole frame came.
            DeadlinePassed: when none came by ``deadline`` (`time.monotonic`).
        """
        while True:
            frame = self._take_frame()
            if frame is not None:
                return frame
            self._wait(deadline)

    def ask(
        self, message: Message, payload: bytes = b"", *, descriptors: Sequence[int] = (), deadline: float | None = None
    ) -> tuple[Message, bytes]:
        """Send one frame and wait for one."""
        self.send(message, payload, descriptors=descriptors, deadline=deadline)
        return self.receive(deadline)

    def drain(self, seconds: float) -> None:
        """Read the pipes for at most ``seconds``, or until they end; the socket is left alone."""
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as pipes:
            for tail in self._open_tails:
                pipes.register(tail.descriptor, selectors.EVENT_READ, tail)
            while pipes.get_map():
                ready = pipes.select(max(0.0, end - time.monotonic()))
                for key, _ in ready:
                    if not key.data.read():
                        pipes.unregister(key.fileobj)
                if not ready:
                    return

    def close_socket(self) -> None:
        """Shut the socket, which the process takes as its end; the pipes can still be drained."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close everything but the pipes, which belong to the caller."""
        self._selector.close()
        self._socket.close()

    def _wait(self, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise DeadlinePassed
        # A signal that comes just before the wait begins does not end it, and Python acts on it only afterwards.
        for key, _ in self._selector.select(_LONGEST_WAIT_S if left is None else min(left, _LONGEST_WAIT_S)):
            if isinstance(key.data, Tail):
                if not key.data.read():
                    self._selector.unregister(key.fileobj)
                    self._open_tails.remove(key.data)
            else:
                self._fill()

    def _fill(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            raise PeerGone from error
        if not data:
            raise PeerGone
        self._received += data

    def _take_frame(self) -> tuple[Message, bytes] | None:
        if len(self._received) < HEADER.size:
            return None
        text_bytes, payload_bytes = HEADER.unpack_from(self._received)
        end = HEADER.size + text_bytes + payload_bytes
        if len(self._received) < end:
            return None
        middle = HEADER.size + text_bytes
        message = json.loads(self._received[HEADER.size : middle])
        payload = bytes(self._received[middle:end])
        del self._received[:end]
        return message, payload
