"""``torch.cuda.is_available()`` asked as "is there an accelerator"."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..accelerator_calls import call_edits
from ..context import Context
from ..finding import Edit, Level, Rewrite
from ..judging import judge_gate, judge_place, review
from ..names import SAME_SHAPE, cuda_member
from ..rule import Docs, Fixed, Judgement, Match, Rule
from ..scripting import may_be_scripted


class AvailabilityGate(Rule):
    code = "U020"
    taxonomy = ("C1",)
    title = "torch.cuda.is_available() stands for any accelerator"
    docs = Docs(
        what="Finds `torch.cuda.is_available()` (and `device_count()` as a condition) in front of code that "
        "any accelerator could run.",
        why="On another accelerator the code is skipped without a word: no synchronize, no saved random "
        "state, no memory budget.",
        instead="Ask `torch.accelerator.is_available()` and make the calls behind it general too.",
        safety="Unsafe: the gate and the calls behind it change together, or not at all; it also opens the "
        "path on MPS. A gate whose code uses "
        "cudart, NCCL, NVTX, versions or capabilities of CUDA is left alone.",
    )
    bad = (
        "import torch\ndef flush(device):\n    if torch.cuda.is_available():\n        torch.cuda.synchronize(device)\n",
        "import torch\ndef fit(n):\n    if not torch.cuda.is_available():\n        return n\n"
        "    _, total = torch.cuda.mem_get_info()\n    return min(n, total)\n",
    )
    good = (
        "import torch\ndef flush(device):\n    if torch.accelerator.is_available():\n"
        "        torch.accelerator.synchronize(device)\n",
    )
    leave_alone = (
        "import torch\ndef arch():\n    if torch.cuda.is_available():\n"
        "        return torch.cuda.get_device_capability()\n",
        "import torch\ndef name():\n    return 'gpu' if torch.cuda.is_available() else 'cpu'\n",
        "import torch\ndef warn():\n"
        "    if torch.cuda.is_available() and not torch.backends.cuda.matmul.allow_tf32:\n"
        "        print('slow')\n",
    )
    fixed = (
        Fixed(
            "import torch\ndef flush():\n    if torch.cuda.is_available():\n"
            "        torch.cuda.synchronize()  # order\n",
            "import torch\ndef flush():\n    if torch.accelerator.is_available():\n"
            "        torch.accelerator.synchronize()  # order\n",
        ),
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node, dotted in context.source.calls:
            if cuda_member(dotted) == "is_available" and not node.args:
                yield Match(node, dotted, "asks for CUDA where any accelerator would do")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        node = match.node
        assert isinstance(node, ast.Call)
        if context.in_tests and isinstance(context.source.parents.get(node), (ast.Assign, ast.keyword)):
            place = judge_place(context, node)
            return review(0.4, "a flag of the tests") if isinstance(place, bool) else place
        return judge_gate(context, node)

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        summary = "ask torch.accelerator.is_available(), and make the calls behind it general"
        node, source = match.node, context.source
        assert isinstance(node, ast.Call)
        region = context.region(node)
        uses = context.uses(region)
        if may_be_scripted(context, node):
            return Rewrite(Level.DISPLAY, summary, "TorchScript knows no torch.accelerator")
        if uses.specific or not uses.generic or not all(cuda_member(name) in SAME_SHAPE for name in uses.generic):
            return Rewrite(Level.DISPLAY, summary, "the calls behind the gate need a person")
        edits = [Edit(*source.span(node.func), "torch.accelerator.is_available")]
        calls = 0
        for inner in (inner for root in region for inner in ast.walk(root) if isinstance(inner, ast.Call)):
            member = cuda_member(source.dotted(inner.func) or "")
            if member in SAME_SHAPE:
                new = call_edits(source, inner, str(member))
                if new is None:
                    return Rewrite(Level.DISPLAY, summary, "the calls behind the gate need a person")
                calls += 1
                edits += new
        if calls != len(uses.generic):
            return Rewrite(Level.DISPLAY, summary, "a function of torch.cuda is passed on, not called")
        return Rewrite(
            Level.UNSAFE, summary, "opens the path on every accelerator, MPS included", tuple(edits), ("torch",)
        )
