"""``x.cuda()``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Level, Rewrite
from ..judging import judge_use
from ..rule import Docs, Judgement, Match, Rule


class CudaMethod(Rule):
    code = "U003"
    taxonomy = ("A2", "G1")
    title = "a tensor or module is moved by .cuda()"
    docs = Docs(
        what="Finds calls of the method `.cuda()` of tensors and modules outside code that is about CUDA.",
        why="`.cuda()` reaches one vendor's device; an option called use_cuda above it does not help users "
        "of another device.",
        instead="Write `.to(device)` with the device of the inputs or of the test.",
        safety="Display only: the device to move to has to come from somewhere, often through a new parameter.",
    )
    bad = (
        "class Fuzzer:\n    def make(self, tensor):\n        if self._cuda:\n"
        "            tensor = tensor.cuda()\n        return tensor\n",
        "@requires_gpu()\ndef test_one(self):\n    return torch.rand(4).cuda()\n",
    )
    good = ("def move(x, device):\n    return x.to(device)\n",)
    leave_alone = (
        'def move(x, y):\n    if y.device.type == "cuda":\n        x = x.cuda()\n    return x\n',
        "class TestCudaStreams:\n    def test_it(self, x):\n        return x.cuda()\n",
        "class Module:\n    def cuda(self, device=None):\n        return self._apply(lambda t: t.cuda(device))\n",
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node in context.source.nodes(ast.Call):
            assert isinstance(node, ast.Call)
            if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda" and len(node.args) <= 1:
                if (context.source.dotted(node.func) or "").startswith("torch.cuda"):
                    continue
                # The call may begin lines above: the name is what a reader looks for.
                yield Match(node, "cuda", "moves to CUDA where the device of the inputs would do")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        return judge_use(context, match.node, flags_excuse=False)

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        return Rewrite(Level.DISPLAY, "write .to(device)", "the device has to come from the inputs or a parameter")
