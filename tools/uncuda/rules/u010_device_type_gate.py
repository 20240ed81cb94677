"""``device.type == "cuda"``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context, chain
from ..finding import Level, Rewrite
from ..guards import raises, string_constants
from ..judging import defect, judge_gate, judge_place, review
from ..names import DEVICE_TYPES, HOSTS
from ..rule import Docs, Judgement, Match, Rule


class DeviceTypeGate(Rule):
    code = "U010"
    taxonomy = ("B1",)
    title = 'a branch is taken for the device type "cuda" only'
    docs = Docs(
        what='Finds comparisons of a device type with "cuda", and chains of them that end in an error.',
        why="What the branch does (a stream, a synchronize, a device context) is often wanted on every "
        "accelerator, and a closed "
        "chain refuses a device that nobody had heard of when it was written.",
        instead='Ask for the capability, or serve every accelerator: `device.type != "cpu"`, `torch.accelerator`, '
        "`torch.get_device_module(device)`; leave a hook in place of the final error.",
        safety="Display only: whether the branch means CUDA or any accelerator is a decision. A branch that "
        "uses what only CUDA has, "
        "or that stands beside a general one, is left alone.",
    )
    bad = (
        'import torch\ndef wait(device):\n    if device.type == "cuda":\n        torch.cuda.synchronize(device)\n',
        'def load(path, device):\n    if device == "cpu":\n        return cpu(path)\n'
        '    elif device == "cuda":\n        return gpu(path)\n'
        '    elif device == "xpu":\n        return xpu(path)\n    else:\n'
        '        raise RuntimeError("unsupported " + device)\n',
    )
    good = ('def route(x):\n    if x.device.type != "cpu":\n        return "hbm"\n',)
    leave_alone = (
        "import torch\ndef fast(x):\n"
        '    if x.device.type == "cuda" and torch.cuda.get_device_capability() >= (8, 0):\n'
        "        return 1\n",
        'import torch\ndef wait(device):\n    if device.type == "cuda":\n'
        "        torch.cuda.synchronize(device)\n    else:\n"
        "        torch.accelerator.synchronize(device)\n",
        'def tile(x):\n    return 128 if x.device.type == "cuda" else 32\n',
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node in context.source.nodes(ast.Compare):
            assert isinstance(node, ast.Compare)
            if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and compared_type(node) == "cuda":
                yield Match(node, "cuda", 'asks whether the device is "cuda"')

    def judge(self, context: Context, match: Match) -> Judgement | None:
        test = match.node
        assert isinstance(test, ast.Compare)
        place = judge_place(context, test)
        if not isinstance(place, bool):
            return place
        if (closed := _closed_chain(context, test)) and not context.handled_beside(test):
            if context.knows_private_use(test):
                return review(0.4, "the function treats PrivateUse1 beside CUDA")
            return defect(0.8, f"the chain knows {', '.join(sorted(closed))} and refuses every other device")
        return judge_gate(context, test)

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        return Rewrite(
            Level.DISPLAY,
            "serve every accelerator, or ask for the capability",
            "the meaning of the branch is a decision",
        )


def compared_type(node: ast.Compare) -> str | None:
    """The device type that a comparison names, when the other side looks like a device type."""
    for side, other in ((node.comparators[0], node.left), (node.left, node.comparators[0])):
        if isinstance(side, ast.Constant) and isinstance(side.value, str) and side.value in DEVICE_TYPES:
            return side.value if not isinstance(other, ast.Constant) else None
    return None


def _closed_chain(context: Context, test: ast.Compare) -> set[str]:
    """Device types of an if/elif chain that names at least two and ends in an error; empty for another shape."""
    source = context.source
    top = next((up for up in source.ancestors(test) if isinstance(up, ast.stmt)), None)
    if not isinstance(top, ast.If):
        return set()
    while isinstance(parent := source.parents.get(top), ast.If) and parent.orelse == [top]:
        top = parent
    branches = list(chain(top))
    last = branches[-1].orelse
    if not any(test in ast.walk(branch.test) for branch in branches):
        return set()
    if not last and raises(branches[0].body) is False:
        block = source.parents.get(top)
        body = getattr(block, "body", [])
        after = body[body.index(top) + 1 :] if top in body else []
        last = after[:1] if after and isinstance(after[0], ast.Raise) else []
    if not raises(last):
        return set()
    named: set[str] = set()
    for branch in branches:
        for node in ast.walk(branch.test):
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                for side in (node.left, node.comparators[0]):
                    named |= {text for text in string_constants(side) or () if text in DEVICE_TYPES}
    return named if len(named) >= 2 and named - HOSTS else set()
