"""A device object compared with the name of a type."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Edit, Level, Rewrite
from ..guards import string_constants
from ..judging import defect, out_of_scope
from ..names import DEVICE_TYPES
from ..rule import Docs, Fixed, Judgement, Match, Rule


class DeviceComparedWithText(Rule):
    code = "U015"
    taxonomy = ("B1",)
    title = "a device object is compared with the name of a type"
    docs = Docs(
        what='Finds `x.device == "cuda"` and `x.device in ("cuda", ...)`, where the left side is a device '
        "and not its type.",
        why="A torch.device never equals a string of its type, so the branch is dead.",
        instead='Compare the type: `x.device.type == "npu"`.',
        safety="Unsafe: the branch begins to be taken. A `self.device` that holds a string is left to a person.",
    )
    bad = (
        'def route(freqs):\n    if freqs.device == "npu":\n        return "native"\n',
        'def f(x):\n    return x.device in ("cuda", "npu")\n',
    )
    good = ('def right(freqs):\n    return freqs.device.type == "npu"\n',)
    leave_alone = (
        'class Timer:\n    def start(self):\n        return self.device == "npu"\n',
        "import sys\ndef f(a):\n    return a.device == b.device\n",
    )
    fixed = (
        Fixed(
            'def route(x):\n    return x.device == "npu"\n',
            'def route(x):\n    return x.device.type == "npu"\n',
        ),
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node in context.source.nodes(ast.Compare):
            assert isinstance(node, ast.Compare)
            left = node.left
            if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
                continue
            if not isinstance(left, ast.Attribute) or left.attr != "device" or not isinstance(left.value, ast.Name):
                continue
            strings = string_constants(node.comparators[0])
            if (
                left.value.id not in ("self", "cls", "args", "torch", "config", "cfg", "opt", "options")
                and strings
                and all(text in DEVICE_TYPES for text in strings)
            ):
                yield Match(node, left.value.id, "compares a device with the name of a type, which is never equal")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        if out_of_scope(context, match.node):
            return None
        function = context.source.function(match.node)
        parameters = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)} if function else set()
        confidence = 0.75 if match.about in parameters else 0.6
        return defect(confidence, "the left side is a device, not the text of one")

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        assert isinstance(match.node, ast.Compare)
        end = context.source.span(match.node.left)[1]
        return Rewrite(Level.UNSAFE, "compare the type", "the branch begins to be taken", (Edit(end, end, ".type"),))
