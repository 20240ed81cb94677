"""torch.cuda as the module that is taken when the device has none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Level, Rewrite
from ..judging import judge_use
from ..rule import Docs, Judgement, Match, Rule


class CudaModuleFallback(Rule):
    code = "U026"
    taxonomy = ("C2",)
    title = "torch.cuda is what remains when a device has no module"
    docs = Docs(
        what="Finds `return torch.cuda`, `x or torch.cuda` and `getattr(torch, name, torch.cuda)` in general code.",
        why="A device whose plugin did not load silently gets CUDA's functions, which then crash far from the cause.",
        instead="Use `torch.get_device_module(device)` and let its error through.",
        safety="Display only: callers may rely on getting some module.",
    )
    bad = (
        "import torch\ndef module(name):\n    try:\n        return getattr(torch, name)\n"
        "    except AttributeError:\n        return torch.cuda\n",
        "import torch\ndef module(name):\n    return getattr(torch, name, torch.cuda)\n",
    )
    good = ("import torch\ndef module(name):\n    return torch.get_device_module(name)\n",)
    leave_alone = (
        'import torch\ndef module(device):\n    if device.type == "cuda":\n        return torch.cuda\n',
        "import torch\ndef cudnn_module():\n    return torch.cuda\n",
    )

    def match(self, context: Context) -> Iterator[Match]:
        source = context.source
        for node in source.nodes(ast.Attribute, ast.Name):
            assert isinstance(node, (ast.Attribute, ast.Name))
            word = node.attr if isinstance(node, ast.Attribute) else source.imports.get(node.id, "").rpartition(".")[2]
            if word != "cuda" or source.dotted(node) != "torch.cuda" or not isinstance(node.ctx, ast.Load):
                continue
            parent = source.parents.get(node)
            is_default = (
                isinstance(parent, ast.Call) and source.dotted(parent.func) == "getattr" and parent.args[2:] == [node]
            )
            is_last = isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or) and parent.values[-1] is node
            is_else = isinstance(parent, ast.IfExp) and parent.orelse is node
            if isinstance(parent, ast.Return) or is_default or is_last or is_else:
                yield Match(node, "torch.cuda", "falls back to torch.cuda for a device that it does not know")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        return judge_use(context, match.node)

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        return Rewrite(Level.DISPLAY, "use torch.get_device_module(device)", "callers may rely on getting some module")
