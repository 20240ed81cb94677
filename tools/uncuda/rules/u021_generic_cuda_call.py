"""A call of torch.cuda for which torch.accelerator has a counterpart."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..accelerator_calls import call_edits
from ..context import Context
from ..finding import Edit, Level, Rewrite
from ..judging import judge_use
from ..names import OTHER_SHAPE, SAME_SHAPE, cuda_member
from ..rule import Docs, Fixed, Judgement, Match, Rule
from ..scripting import may_be_scripted


class GenericCudaCall(Rule):
    code = "U021"
    taxonomy = ("C2",)
    title = "a general operation is asked of torch.cuda"
    docs = Docs(
        what="Finds unguarded calls of torch.cuda for streams, events, synchronize, the current device and "
        "memory in general code.",
        why="They raise without CUDA, or they synchronize, measure or select a device that does not hold the data.",
        instead="Call torch.accelerator, or the module of the device at hand (`torch.get_device_module(device)`).",
        safety="Safe for `synchronize()` and `empty_cache()` without arguments. Unsafe for the rest: indices, "
        "handles and isinstance checks may "
        "depend on CUDA. Names whose shape differs are shown only; `torch.cuda.stream(s)` becomes the "
        "stream as a context.",
    )
    bad = (
        "import torch\ndef time_it(f):\n    torch.cuda.synchronize()\n    f()\n",
        "import torch\nclass Tracker:\n    def device(self):\n"
        "        return torch.device(self.kind, torch.cuda.current_device())\n",
        "import torch\ndef run(s, f):\n    with torch.cuda.stream(s):\n        f()\n",
        "from torch.cuda import synchronize as sync\ndef wait():\n    sync()\n",
    )
    good = ("import torch\ndef time_it(f):\n    torch.accelerator.synchronize()\n    f()\n",)
    leave_alone = (
        "import torch\ndef wait(x):\n    if x.is_cuda:\n        torch.cuda.synchronize(x.device)\n",
        "import torch\ndef cudnn_time(f):\n    torch.cuda.synchronize()\n",
        "import torch\nTABLE = [torch.cuda.synchronize, torch.cuda.current_device]\n",
        "import torch\ndef f(s: torch.cuda.Stream) -> torch.cuda.Event: ...\n",
        "from typing import TYPE_CHECKING\nimport torch\nif TYPE_CHECKING:\n    x = torch.cuda.current_device()\n",
    )
    fixed = (
        Fixed(
            "import torch\ndef t():\n    torch.cuda.synchronize()  # wait\n",
            "import torch\ndef t():\n    torch.accelerator.synchronize()  # wait\n",
            unsafe=False,
        ),
        Fixed(
            "import torch\ndef run(s, f):\n    with torch.cuda.stream(s):\n        f()\n",
            "import torch\ndef run(s, f):\n    with s:\n        f()\n",
        ),
        Fixed(
            "import torch\ndef t(rank):\n    torch.cuda.set_device(device=rank)\n",
            "import torch\ndef t(rank):\n    torch.accelerator.set_device_index(rank)\n",
        ),
        Fixed(
            "from torch.cuda import synchronize\ndef t():\n    synchronize()\n",
            "import torch\nfrom torch.cuda import synchronize\ndef t():\n    torch.accelerator.synchronize()\n",
            unsafe=False,
        ),
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node, dotted in context.source.calls:
            member = cuda_member(dotted)
            if member is not None and member != "is_available" and (member in SAME_SHAPE or member in OTHER_SHAPE):
                yield Match(node, member, f"torch.cuda.{member}() where any accelerator would do")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        return judge_use(context, match.node)

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        call, source, member = match.node, context.source, match.about
        assert isinstance(call, ast.Call)
        target = SAME_SHAPE.get(member) or OTHER_SHAPE[member]
        summary = f"use {target}"
        if may_be_scripted(context, call):
            return Rewrite(Level.DISPLAY, summary, "TorchScript knows no torch.accelerator")
        if context.cuda_guards(call):
            return Rewrite(Level.DISPLAY, summary, "changes together with the test above it")
        if (
            member == "stream"
            and isinstance(source.parents.get(call), ast.withitem)
            and len(call.args) == 1
            and not call.keywords
        ):
            edit = Edit(*source.span(call), source.text(call.args[0]))
            return Rewrite(Level.UNSAFE, summary, "a stream that is None was allowed before", (edit,))
        if member not in SAME_SHAPE:
            return Rewrite(Level.DISPLAY, summary, "the call has another shape")
        edits = call_edits(source, call, member)
        if edits is None:
            return Rewrite(Level.DISPLAY, summary, "its arguments have no place in the other function")
        plain = not call.args and not call.keywords
        level = Level.SAFE if member in ("synchronize", "empty_cache") and plain else Level.UNSAFE
        note = "the same on CUDA" if level is Level.SAFE else "arguments, indices or handles may depend on CUDA"
        return Rewrite(level, summary, note, edits, ("torch",))
