"""Edits that turn a call of torch.cuda into the call of torch.accelerator with the same meaning."""

from __future__ import annotations

import ast

from .finding import Edit
from .names import SAME_SHAPE
from .source import Source

# Classes keep their keywords; the functions of torch.accelerator take the device by position only.
_CLASSES = {"Stream", "Event"}


def call_edits(source: Source, call: ast.Call, member: str) -> tuple[Edit, ...] | None:
    """Edits for one call; None when its arguments have no place in the other function.

    `member` is a key of SAME_SHAPE.
    """
    edits = [Edit(*source.span(call.func), SAME_SHAPE[member])]
    if member in _CLASSES:
        return tuple(edits)
    if any(isinstance(argument, ast.Starred) for argument in call.args) or len(call.args) + len(call.keywords) > 1:
        return None
    for keyword in call.keywords:
        if keyword.arg not in ("device", "stream"):
            return None
        start = source.offset(keyword.lineno, keyword.col_offset)
        edits.append(Edit(start, source.span(keyword.value)[0], ""))
    return tuple(edits)
