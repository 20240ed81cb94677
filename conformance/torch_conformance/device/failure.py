"""Exceptions with a meaning of their own, and how a frame carries any exception."""

from __future__ import annotations

import traceback
from typing import Any


class Mismatch(AssertionError):
    """It ran and the effect is wrong. The text says got, wanted and where."""


class Refused(Exception):
    """The backend cleanly refused something that it does not claim."""


class SuiteError(Exception):
    """The suite itself is at fault: the outcome is ORACLE_BROKEN, never the backend's."""


def error_message(error: BaseException) -> dict[str, str]:
    """An exception as a frame carries it."""
    return {
        "type": type(error).__name__,
        "message": str(error),
        "traceback": "".join(traceback.format_exception(type(error), error, error.__traceback__)),
    }


def summary(error: BaseException) -> str:
    """An exception as one paragraph of an outcome: its type and its first lines."""
    text = str(error).strip() or "(no message)"
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: " + " ".join(lines[:6])


def payload(error: BaseException) -> dict[str, Any]:
    """`error_message` with whether it is a clean refusal."""
    return {**error_message(error), "refusal": isinstance(error, NotImplementedError)}
