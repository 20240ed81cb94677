"""A name of torch.cuda inside a string that is resolved at run time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Level, Rewrite, Verdict
from ..judging import judge_place, review
from ..rule import Docs, Judgement, Match, Rule


class ReferenceInString(Rule):
    code = "U032"
    taxonomy = ("F4",)
    title = "a string refers to torch.cuda"
    docs = Docs(
        what='Finds strings that are resolved as names: `mock.patch("torch.cuda.x")`, `import_module("torch.cuda")`.',
        why="When the code is made general, the string keeps pointing at CUDA and the patch or import has no effect.",
        instead="Refer to the module of the device in use.",
        safety="Display only: it follows the code that it refers to.",
    )
    strongest = Verdict.REVIEW
    bad = (
        "from unittest import mock\ndef test_it():\n"
        '    with mock.patch("torch.cuda.is_available", return_value=True):\n        pass\n',
    )
    good = (
        "from unittest import mock\ndef test_it():\n"
        '    with mock.patch("torch.accelerator.is_available"):\n        pass\n',
    )
    leave_alone = ('NAMES = ["torch.cuda.is_available"]\n', '"""About torch.cuda."""\n')

    def match(self, context: Context) -> Iterator[Match]:
        for node, dotted in context.source.calls:
            name = dotted.rpartition(".")[2]
            if name in ("patch", "import_module", "__import__", "find_spec", "resolve_name") and node.args:
                first = node.args[0]
                if (
                    isinstance(first, ast.Constant)
                    and isinstance(first.value, str)
                    and first.value.startswith("torch.cuda")
                ):
                    yield Match(first, name, f"refers to {first.value} by name")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        place = judge_place(context, match.node)
        return review(0.5, "it follows the code that it refers to") if isinstance(place, bool) else place

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        return Rewrite(Level.DISPLAY, "refer to the module of the device in use", "it follows the code")
