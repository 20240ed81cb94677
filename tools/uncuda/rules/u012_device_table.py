"""A dict keyed by device types without PrivateUse1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Level, Rewrite
from ..judging import defect, judge_place, review
from ..names import ACCELERATORS
from ..project import table_devices
from ..rule import Docs, Judgement, Match, Rule


class DeviceTable(Rule):
    code = "U012"
    taxonomy = ("B4",)
    title = "a table keyed by device types has no entry for others"
    docs = Docs(
        what="Finds dict literals whose keys are device types, with two accelerators or more, and to which "
        "nothing is ever added.",
        why="Looking up a plugin's device raises KeyError or quietly takes the default for a CPU.",
        instead="Ask the device's module, give the table a registration function, or look up with a general "
        "entry as the default.",
        safety="Display only: the value for another device is not in the code. Tables that other code adds to "
        "are left alone.",
    )
    bad = (
        'NAMES = {"cpu": "at::kCPU", "cuda": "at::kCUDA", "xpu": "at::kXPU"}\ndef name(d):\n    return NAMES[d.type]\n',
        'def spread(self, backend):\n    self.map = {"cpu": backend, "cuda": backend, "xpu": backend}\n',
    )
    good = ("HANDLERS = {}\ndef register(kind, handler):\n    HANDLERS[kind] = handler\n",)
    leave_alone = (
        'MAP = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl"}\ndef register(kind, name):\n    MAP[kind] = name\n',
        'LINKS = {"cuda:0": "cuda:1", "cuda:1": "cuda:0"}\n',
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node in context.source.nodes(ast.Dict):
            assert isinstance(node, ast.Dict)
            devices, _, is_open = table_devices(node)
            if not is_open and len(set(devices) & ACCELERATORS) >= 2:
                line = _branch_line(context, node) if _spreads_one_value(node) else 0
                yield Match(node, _target(context, node), f"knows {', '.join(devices)} and nothing else", line)

    def judge(self, context: Context, match: Match) -> Judgement | None:
        place = judge_place(context, match.node)
        if not isinstance(place, bool):
            return place
        assert isinstance(match.node, ast.Dict)
        if _spreads_one_value(match.node) and not context.knows_private_use(match.node):
            return defect(0.65, "one value is given to each of a fixed list of devices")
        if match.about and context.project.is_written(match.about):
            return None
        if context.knows_private_use(match.node):
            return review(0.4, "the function treats PrivateUse1 beside the table")
        if not match.about:
            return review(0.4, "how the table is read is not seen here")
        return defect(0.65, "several accelerators are in the table", "nothing in the tree adds to it")

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        return Rewrite(
            Level.DISPLAY, "add an entry or a registration function", "the value for another device is not in the code"
        )


def _target(context: Context, node: ast.Dict) -> str:
    statement = context.source.parents.get(node)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        return target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
    return ""


def _spreads_one_value(node: ast.Dict) -> bool:
    return len({ast.dump(value) for value in node.values}) == 1 and not isinstance(node.values[0], ast.Constant)


def _branch_line(context: Context, node: ast.Dict) -> int:
    """The line of the `else:` that assumes the devices: the branch as a whole is the assumption; 0 outside of one."""
    statement = context.source.statement(node)
    branch = context.source.parents.get(statement) if statement is not None else None
    if isinstance(branch, ast.If) and statement in branch.orelse:
        return (branch.body[-1].end_lineno or 0) + 1
    return 0
