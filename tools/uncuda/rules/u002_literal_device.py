"""A literal CUDA device in code that is meant for any device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Level, Rewrite
from ..judging import judge_use, review
from ..rule import Docs, Judgement, Match, Rule

_TAKES_DEVICE = {"to", "set_default_device", "get_device_module", "Generator", "Stream", "Event"}


class LiteralDevice(Rule):
    code = "U002"
    taxonomy = ("A2", "G1")
    title = "a tensor, device or module is placed on a literal CUDA device"
    docs = Docs(
        what='Finds `device="cuda"`, `torch.device("cuda")`, `.to("cuda")` and their indexed forms, also as '
        "context managers.",
        why="The code places data on CUDA whatever device its inputs are on, so it fails or runs on the "
        "wrong device elsewhere.",
        instead="Use the device of a tensor at hand; without one, `torch.accelerator.current_accelerator()`.",
        safety="Display only: which device is meant depends on the code around it. Uses below a test for a "
        "CUDA device, in a "
        "module, class or function about CUDA, and device types given to registries are left alone.",
    )
    bad = (
        'import torch\ndef make(n):\n    return torch.zeros(n, device="cuda")\n',
        'import torch\ndef build():\n    with torch.device("cuda"):\n        return torch.nn.Linear(2, 2)\n',
        'import torch\ndef build():\n    torch.set_default_device("cuda")\n',
        'import torch\ndef build():\n    return torch.device(type="cuda", index=0)\n',
        'def move(x):\n    return x.to("cuda:1")\n',
    )
    good = (
        "import torch\ndef make(x, n):\n    return torch.zeros(n, device=x.device)\n",
        'import torch\ndef build():\n    with torch.device("cpu"):\n        return torch.nn.Linear(2, 2)\n',
    )
    leave_alone = (
        'import torch\ndef make(x):\n    if x.device.type == "cuda":\n        return torch.zeros(3, device="cuda")\n',
        'import torch\ndef helper_cuda_only():\n    return torch.rand(4, device="cuda")\n',
        'def skips():\n    return [DecorateInfo(skip, "test_out", device_type="cuda")]\n',
    )

    def match(self, context: Context) -> Iterator[Match]:
        source = context.source
        for node in source.nodes(ast.Call):
            assert isinstance(node, ast.Call)
            attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            literal = next(
                (word.value for word in node.keywords if word.arg == "device" and is_cuda_literal(word.value)), None
            )
            if literal is None and attribute == "device" and (source.dotted(node.func) or "") == "torch.device":
                literal = next(
                    (
                        value
                        for value in (*node.args[:1], *(w.value for w in node.keywords if w.arg == "type"))
                        if is_cuda_literal(value)
                    ),
                    None,
                )
            if literal is None and attribute in _TAKES_DEVICE and node.args and is_cuda_literal(node.args[0]):
                literal = node.args[0]
            if literal is not None:
                message = f"a literal {source.text(literal)} where any accelerator would do"
                yield Match(literal, attribute, message, _host_gate_line(context, node))

    def judge(self, context: Context, match: Match) -> Judgement | None:
        call = next(up for up in context.source.ancestors(match.node) if isinstance(up, ast.Call))
        if match.about == "device" and _is_comparison_operand(context, call):
            test = next(up for up in context.source.ancestors(call) if isinstance(up, ast.Compare))
            if context.guarded_by_device(test):
                return None
        judgement = judge_use(context, match.node)
        if judgement is not None and _is_registration(context, call):
            return review(0.3, "an argument of a registration or of a check, not a placement")
        return judgement

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        return Rewrite(
            Level.DISPLAY,
            "take the device of a tensor at hand, else torch.accelerator.current_accelerator()",
            "which of the two is meant depends on the code around it",
        )


def is_cuda_literal(node: ast.expr) -> bool:
    """Whether an expression is the text of a CUDA device; ``f"cuda:{i}"`` counts."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]  # type: ignore[assignment]
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and (node.value == "cuda" or node.value.startswith("cuda:"))
    )


def _is_comparison_operand(context: Context, call: ast.Call) -> bool:
    return isinstance(context.source.parents.get(call), ast.Compare)


def _is_registration(context: Context, call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name.startswith(("register", "check", "is_", "_check", "skip", "supports")) or name.endswith(
        ("Info", "Config")
    )


def _host_gate_line(context: Context, call: ast.Call) -> int:
    """The line of a test for the CPU just above a test for CUDA (these two are served one by one), or 0."""
    source = context.source
    gate = source.statement(call)
    if not isinstance(gate, ast.If) or call not in ast.walk(gate.test):
        return 0
    block = getattr(source.parents.get(gate), "body", [])
    position = block.index(gate) if gate in block else 0
    above = block[position - 1] if position else None
    if isinstance(above, ast.If) and any(
        isinstance(n, ast.Constant) and n.value == "cpu" for n in ast.walk(above.test)
    ):
        return above.lineno
    return 0
