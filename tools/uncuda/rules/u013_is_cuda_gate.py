"""``tensor.is_cuda``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Level, Rewrite
from ..judging import judge_gate
from ..rule import Docs, Judgement, Match, Rule


class IsCudaGate(Rule):
    code = "U013"
    taxonomy = ("B5",)
    title = "a branch is taken for tensor.is_cuda only"
    docs = Docs(
        what="Finds `is_cuda` used as a condition.",
        why="As with a device type: what the branch does is often wanted on every accelerator.",
        instead='Ask for the capability, or serve every accelerator (`tensor.device.type != "cpu"`).',
        safety="Display only: whether the branch means CUDA or any accelerator is a decision.",
    )
    bad = ("import torch\ndef wait(x):\n    if x.is_cuda:\n        torch.cuda.synchronize(x.device)\n",)
    good = ('def wait(x):\n    if x.device.type != "cpu":\n        return 1\n',)
    leave_alone = (
        "import torch\ndef fast(x):\n    return x.is_cuda and torch.backends.cudnn.enabled\n",
        "def plain(x):\n    return x.is_cuda\n",
        "class Meta:\n    def copy(self, x):\n        self.is_cuda = x.is_cuda\n",
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node in context.source.nodes(ast.Attribute):
            assert isinstance(node, ast.Attribute)
            if node.attr == "is_cuda" and isinstance(node.ctx, ast.Load):
                yield Match(node, "is_cuda", "asks whether the tensor is on CUDA")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        assert isinstance(match.node, ast.expr)
        return judge_gate(context, match.node)

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        return Rewrite(
            Level.DISPLAY,
            "serve every accelerator, or ask for the capability",
            "the meaning of the branch is a decision",
        )
