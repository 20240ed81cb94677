"""A comparison with the literal "privateuse1", which no device type ever is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Edit, Level, Rewrite
from ..guards import string_constants
from ..judging import defect, out_of_scope, review
from ..rule import Docs, Fixed, Judgement, Match, Rule
from ..scripting import may_be_scripted

_LITERALS = {"privateuse1", "PrivateUse1"}


class DeadPrivateUse1Literal(Rule):
    code = "U014"
    taxonomy = ("B6",)
    title = 'a device type is compared with "privateuse1"'
    docs = Docs(
        what='Finds `device.type == "privateuse1"` and membership of that literal in a list that a device '
        "type is looked up in.",
        why='A PrivateUse1 device\'s type is the name its backend gave it, and "privateuseone" before that; '
        "the branch is dead.",
        instead="Compare with `torch._C._get_privateuse1_backend_name()`.",
        safety='Safe: the comparison was never true. Where "privateuse1" is a registration token that callers '
        "pass by name "
        "(serialization), it is left alone.",
    )
    bad = (
        'def kind(x):\n    if x.device.type == "privateuse1":\n        return 12\n',
        'def ok(device):\n    return device.type in ("cuda", "privateuse1")\n',
    )
    good = ("import torch\ndef kind(x):\n    return x.device.type == torch._C._get_privateuse1_backend_name()\n",)
    leave_alone = (
        'import torch\ndef tag(backend_name):\n    if backend_name == "privateuse1":\n'
        "        backend_name = torch._C._get_privateuse1_backend_name()\n    return backend_name\n",
        'register("privateuse1", 23)\n',
    )
    fixed = (
        Fixed(
            'import torch\ndef kind(x):\n    if x.device.type == "privateuse1":  # any plugin\n        return 12\n',
            "import torch\ndef kind(x):\n"
            "    if x.device.type == torch._C._get_privateuse1_backend_name():  # any plugin\n"
            "        return 12\n",
            unsafe=False,
        ),
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node in context.source.nodes(ast.Compare):
            assert isinstance(node, ast.Compare)
            if len(node.ops) != 1:
                continue
            for side in (node.left, node.comparators[0]):
                if set(string_constants(side) or ()) & _LITERALS:
                    yield Match(node, "privateuse1", 'compares with "privateuse1", which no device type ever is')

    def judge(self, context: Context, match: Match) -> Judgement | None:
        node = match.node
        assert isinstance(node, ast.Compare)
        if out_of_scope(context, node):
            return None
        other = node.left if string_constants(node.comparators[0]) is not None else node.comparators[0]
        text = context.source.text(other)
        if context.knows_private_use(node) and not text.endswith(".type"):
            return review(0.4, "a token that is translated to the backend's name")
        if text.endswith((".type", "device_type", "device")) or "device_type" in text:
            return defect(0.95, "a device type is the name that the backend gave, never this literal")
        return review(0.5, "it may be a token that callers pass by name")

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        summary = "compare with torch._C._get_privateuse1_backend_name()"
        node, source = match.node, context.source
        assert isinstance(node, ast.Compare)
        if reason := may_be_scripted(context, node):
            return Rewrite(Level.DISPLAY, summary, f"{reason}, and TorchScript does not know the call")
        if source.function(node) is None:
            return Rewrite(Level.DISPLAY, summary, "evaluated at import, where the name is not final")
        judgement = self.judge(context, match)
        if judgement is None or judgement.confidence < 0.9:
            return Rewrite(Level.DISPLAY, summary, "it may be a registration token")
        literals = [inner for inner in ast.walk(node) if isinstance(inner, ast.Constant) and inner.value in _LITERALS]
        edits = tuple(Edit(*source.span(literal), "torch._C._get_privateuse1_backend_name()") for literal in literals)
        return Rewrite(Level.SAFE, summary, "the comparison was never true", edits, ("torch",))
