"""A CUDA or ROCm build taken for a capability."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Level, Rewrite
from ..guards import raises
from ..judging import defect, judge_place, review
from ..rule import Docs, Judgement, Match, Rule


class VersionGate(Rule):
    code = "U024"
    taxonomy = ("C5",)
    title = "how torch was built decides what may be done"
    docs = Docs(
        what="Finds torch.version.cuda and torch.version.hip that lead to an error in code that weighs "
        "several devices.",
        why="The build says nothing about the device in use: a feature that it supports is refused.",
        instead="Ask the device or the collective backend in use for the capability.",
        safety="Display only: the capability to ask for is not in the code.",
    )
    bad = (
        "import torch\ndef check():\n"
        "    cuda_ok = (torch.version.cuda is not None) or torch.version.hip is not None\n"
        "    xpu_ok = torch.xpu.is_available()\n    if not (cuda_ok or xpu_ok):\n"
        "        raise TypeError('needs CUDA or XPU')\n",
    )
    good = ("def check(group):\n    if not group.supports_bfloat16:\n        raise TypeError('no bf16')\n",)
    leave_alone = (
        "import torch\ndef tag():\n    return 'rocm' if torch.version.hip else 'cuda'\n",
        "import torch\nIS_ROCM = torch.version.hip is not None\n",
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node in context.source.nodes(ast.Attribute):
            assert isinstance(node, ast.Attribute)
            if context.source.dotted(node) in ("torch.version.cuda", "torch.version.hip"):
                yield Match(node, node.attr, "takes how torch was built for a capability")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        node, source = match.node, context.source
        function = source.function(node)
        if function is None:
            return None
        statement = source.statement(node)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            weighs = _weighs_others(context, function) and not context.knows_private_use(node)
            if weighs and _decides_an_error(function, name):
                reason = f"`{name}` decides whether an error is raised"
                return defect(0.7, reason, "other devices are weighed, PrivateUse1 is not")
        place = judge_place(context, node)
        return review(0.2, "mostly a property of the build") if isinstance(place, bool) else None

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        return Rewrite(
            Level.DISPLAY, "ask the device or collective backend for the capability", "it is not in the code"
        )


def _weighs_others(context: Context, function: ast.AST) -> bool:
    """Whether a function asks other vendors' modules too."""
    modules = ("torch.xpu.", "torch.mps.", "torch.mtia.")
    names = (inner for inner in ast.walk(function) if isinstance(inner, ast.Attribute))
    return any((context.source.dotted(inner) or "").startswith(modules) for inner in names)


def _decides_an_error(function: ast.AST, name: str) -> bool:
    """Whether a variable is part of a condition under which the function raises."""
    gates = (inner for inner in ast.walk(function) if isinstance(inner, ast.If) and raises(inner.body))
    return any(getattr(inner, "id", "") == name for gate in gates for inner in ast.walk(gate.test))
