"""Errors that end a command with one clear paragraph and a documented exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

EXIT_EXPECTED = 0
"""Everything was as expected."""
EXIT_FINDINGS = 1
"""Regressions, unexpected passes, broken expectations, or a run that did not come to its end."""
EXIT_USAGE = 2
"""Wrong usage: an unknown name, a broken file, a folder that cannot be used."""
EXIT_START = 3
"""The backend could not be started."""


class ConformanceError(Exception):
    """Base of the errors that a command prints without a stack trace.

    The text says what was got, what was wanted, where, and what to do next.
    """

    exit_code = EXIT_USAGE


class UsageError(ConformanceError):
    """What the user asked for cannot be done as asked."""


class BackendStartError(ConformanceError):
    """The backend could not be started: no torch, torch too old, a missing build, an import that failed."""

    exit_code = EXIT_START


def nearest(word: str, words: Iterable[str]) -> str:
    """The most similar of ``words``, or an empty text when none is similar."""
    found = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return found[0] if found else ""


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """``; did you mean 'x'?`` or an empty text."""
    found = nearest(word, words)
    return f"; did you mean {found!r}?" if found else ""
