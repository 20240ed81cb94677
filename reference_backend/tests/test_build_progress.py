"""Reading what ninja prints, and showing it."""

import io

from neuron_ref.build_progress import CompiledFile, FailedFile, OtherLine, Progress, read_output

_OUTPUT = """\
running build_ext
[1/3] c++ -MMD -c /work/a.cpp -o a.o
/work/a.cpp:1:1: warning: a warning
[2/3] c++ -MMD -c /work/b.cpp -o b.o
FAILED: [code=1] /build/b.o
c++ -MMD -c /work/b.cpp -o b.o
/work/b.cpp:1:6: error: expected initializer
    1 | int b
ninja: build stopped: subcommand failed.
"""


def test_files_failures_and_the_rest_are_told_apart() -> None:
    events = list(read_output(_OUTPUT.splitlines(keepends=True)))
    assert [type(event) for event in events] == [
        OtherLine,
        CompiledFile,
        OtherLine,
        CompiledFile,
        FailedFile,
        OtherLine,
    ]
    compiled = events[1]
    assert isinstance(compiled, CompiledFile)
    assert (compiled.done, compiled.total, compiled.name) == (1, 3, "a.cpp")


def test_a_failure_shows_the_words_of_the_compiler_without_the_command() -> None:
    (failed,) = [event for event in read_output(_OUTPUT.splitlines()) if isinstance(event, FailedFile)]
    assert failed.message == (
        "FAILED: [code=1] /build/b.o\n/work/b.cpp:1:6: error: expected initializer\n    1 | int b"
    )


def test_a_failure_at_the_very_end_is_not_lost() -> None:
    events = list(read_output(["[1/1] c++ -c x.cpp", "FAILED: x.o", "c++ -c x.cpp", "x.cpp:1: error: no"]))
    assert isinstance(events[-1], FailedFile)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_file_gets_one_line_a_step() -> None:
    stream = io.StringIO()
    progress = Progress(stream, started=0.0)
    progress.show(CompiledFile(1, 2, "long_name.cpp"))
    progress.show(CompiledFile(2, 2, "a.cpp"))
    progress.end()
    lines = stream.getvalue().splitlines()
    assert [line.split("  ")[0] for line in lines] == ["[1/2] long_name.cpp", "[2/2] a.cpp"]


def test_a_terminal_gets_one_line_that_is_overwritten_and_says_how_long_it_takes() -> None:
    stream = Terminal()
    progress = Progress(stream, started=0.0)
    progress.show(CompiledFile(1, 2, "long_name.cpp"))
    progress.say("linking")
    progress.end()
    shown = stream.getvalue()
    assert shown.count("\n") == 1 and shown.endswith("\n")
    first, second = shown.strip("\r\n").split("\r")
    assert "to go" in first
    assert second.startswith("linking") and len(second) == len(first)
