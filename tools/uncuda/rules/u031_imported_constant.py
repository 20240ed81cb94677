"""Membership in, or lookup by, a constant that lists device types elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Level, Rewrite
from ..judging import defect, judge_place, review
from ..rule import Docs, Judgement, Match, Rule


class ImportedConstant(Rule):
    code = "U031"
    taxonomy = ("F6",)
    title = "a device is looked up in a constant that has no PrivateUse1"
    docs = Docs(
        what="Finds membership tests and lookups in a module constant that holds device types, wherever it "
        "is defined, re-exports followed.",
        why="The line does not name a device, so a search for one misses it; a plugin's device is refused there.",
        instead="Ask for the capability, or make the constant a function that includes the registered backend.",
        safety="Display only: the constant is shared, and each use may mean something else.",
    )
    bad = (
        'KINDS = ("cuda", "xpu", "mps")\ndef is_fast(kind):\n    return kind in KINDS\n',
        'NAMES = {"cpu": "at::kCPU", "cuda": "at::kCUDA", "xpu": "at::kXPU"}\ndef emit(d):\n'
        "    assert d.type in NAMES\n    return NAMES[d.type]\n",
    )
    good = ('UNITS = ["s", "ms"]\ndef is_unit(u):\n    return u in UNITS\n',)
    leave_alone = (
        'import torch\nKINDS = ("cuda", "xpu", torch._C._get_privateuse1_backend_name())\n'
        "def is_fast(kind):\n    return kind in KINDS\n",
        'MAP = {"cuda": 1, "xpu": 2}\nMAP["other"] = 3\ndef f(k):\n    return MAP[k]\n',
    )

    def match(self, context: Context) -> Iterator[Match]:
        source = context.source
        for node in source.nodes(ast.Compare):
            assert isinstance(node, ast.Compare)
            if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                yield from self._table_use(context, node, node.comparators[0])
        for subscript in source.nodes(ast.Subscript):
            assert isinstance(subscript, ast.Subscript)
            if isinstance(subscript.ctx, ast.Load):
                yield from self._table_use(context, subscript, subscript.value)

    def _table_use(self, context: Context, node: ast.expr, constant: ast.expr) -> Iterator[Match]:
        dotted = context.source.dotted(constant)
        if dotted is None:
            return
        if "." not in dotted:
            dotted = f"{context.source.module}.{dotted}"
        table = context.project.table(dotted)
        if table is not None and not table.open:
            yield Match(node, table.dotted, f"looks a device up in {table.dotted} ({', '.join(table.devices)})")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        place = judge_place(context, match.node)
        if not isinstance(place, bool):
            return place
        if context.knows_private_use(match.node):
            return review(0.4, "the function treats PrivateUse1 beside it")
        if context.guarded_by_device(match.node):
            return None
        return defect(
            0.7, "the constant lists several accelerators, so it means accelerators in general", "nothing adds to it"
        )

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        return Rewrite(
            Level.DISPLAY, "ask for the capability, or make the constant a function", "the constant is shared"
        )
