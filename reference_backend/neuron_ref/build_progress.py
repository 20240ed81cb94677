"""What a running build shows: files done, files to do, a time to go; and what a failed one says."""

import re
import time
from collections.abc import Iterable, Iterator
from typing import TextIO

# ninja -v prints "[3/17] <command>" when a file is compiled and "FAILED: <object>" (newer ones add "[code=1]") before
# the command and the compiler's words of one that did not compile.
_DONE = re.compile(r"\[(\d+)/(\d+)\] (.*)")
_SOURCE = re.compile(r"\S+/([^/\s]+\.cpp)\b")


class CompiledFile:
    """One more file is done."""

    __slots__ = ("done", "name", "total")

    def __init__(self, done: int, total: int, name: str) -> None:
        self.done, self.total, self.name = done, total, name


class FailedFile:
    """A file that did not compile: the object, the command and what the compiler said."""

    __slots__ = ("lines",)

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    @property
    def message(self) -> str:
        """The compiler's words without the command, which is longer than they are."""
        words = [line for line in self.lines[1:] if " -c " not in line]
        return "\n".join([self.lines[0], *words])


class OtherLine:
    """Anything else that a build prints."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def read_output(lines: Iterable[str]) -> Iterator[CompiledFile | FailedFile | OtherLine]:
    """Turn the output of ``ninja -v`` into events, in order."""
    failed: list[str] | None = None
    for raw in lines:
        line = raw.rstrip("\n")
        done = _DONE.match(line)
        if done or line.startswith(("FAILED: ", "ninja: ")):
            if failed is not None:
                yield FailedFile(failed)
            failed = None
        if done:
            source = _SOURCE.findall(done[3])
            yield CompiledFile(int(done[1]), int(done[2]), source[-1] if source else "")
        elif line.startswith("FAILED: "):
            failed = [line]
        elif failed is not None:
            failed.append(line)
        else:
            yield OtherLine(line)
    if failed is not None:
        yield FailedFile(failed)


class Progress:
    """Writes progress to a stream: one line that is overwritten on a terminal, a line per file elsewhere."""

    def __init__(self, stream: TextIO, started: float) -> None:
        self._stream = stream
        self._started = started
        self._terminal = stream.isatty()
        self._width = 0

    def show(self, event: CompiledFile) -> None:
        seconds = time.monotonic() - self._started
        text = f"[{event.done}/{event.total}] {event.name}  {seconds:.0f} s"
        if self._terminal and event.done < event.total:
            text += f", about {seconds / event.done * (event.total - event.done):.0f} s to go"
        self.say(text)

    def say(self, text: str) -> None:
        """Show one line; on a terminal it takes the place of the one before."""
        if self._terminal:
            self._stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def end(self) -> None:
        """Leave what is shown in place."""
        if self._terminal and self._width:
            self._stream.write("\n")
            self._stream.flush()
