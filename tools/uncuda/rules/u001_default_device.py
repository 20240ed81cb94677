"""A parameter whose default is "cuda"."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Edit, Level, Rewrite
from ..judging import defect, out_of_scope, review
from ..rule import Docs, Fixed, Judgement, Match, Rule
from ..scripting import may_be_scripted
from ..source import FUNCTIONS, FunctionNode


class DefaultDevice(Rule):
    code = "U001"
    taxonomy = ("A1",)
    title = 'a parameter or field defaults to "cuda"'
    docs = Docs(
        what='Finds parameters and dataclass fields whose default value is the device type "cuda".',
        why="Who calls without the argument gets CUDA on a machine that has another accelerator: an error, "
        "or, worse, a "
        "feature that disables itself silently.",
        instead="Default to None and ask `torch.accelerator.current_accelerator()` inside the body, at call time.",
        safety="Unsafe: the signature changes, and documentation that shows the default has to follow. The "
        "accelerator is never "
        "asked in the default expression, which runs at import, before a plugin registers. Functions "
        "that TorchScript may "
        "compile, and fields, get no rewrite.",
    )
    bad = (
        'import torch\ndef scale(x, device: str = "cuda"):\n    return torch.ones(3, device=device)\n',
        'class Cache:\n    def __init__(self, size, *, device="cuda"):\n        self.device = device\n',
        "import dataclasses\n@dataclasses.dataclass\nclass Options:\n    device: str = 'cuda'\n",
    )
    good = (
        "import torch\ndef scale(x, device: str | None = None):\n    if device is None:\n"
        "        device = torch.accelerator.current_accelerator().type\n    return torch.ones(3, device=device)\n",
    )
    leave_alone = (
        'def cudnn_flags(kind="cuda"):\n    return kind\n',
        'def _handle(kind="cuda"):\n    return kind\n\ndef use():\n    return _handle("xpu")\n',
        "def paint(colour='red'):\n    return colour\n",
    )
    fixed = (
        Fixed(
            'import torch\n\n\ndef ones(n: int, device: str = "cuda") -> torch.Tensor:\n    """Ones."""\n'
            "    return torch.ones(n, device=device)  # on it\n",
            'import torch\n\n\ndef ones(n: int, device: str | None = None) -> torch.Tensor:\n    """Ones."""\n'
            "    if device is None:\n        accelerator = torch.accelerator.current_accelerator()\n"
            '        device = accelerator.type if accelerator is not None else "cuda"\n'
            "    return torch.ones(n, device=device)  # on it\n",
        ),
    )

    def match(self, context: Context) -> Iterator[Match]:
        source = context.source
        for node in source.nodes(*FUNCTIONS):
            assert isinstance(node, FUNCTIONS)
            for argument, default in defaults(node):
                if isinstance(default, ast.Constant) and default.value == "cuda":
                    yield Match(
                        argument,
                        argument.arg,
                        f'`{argument.arg}` of {node.name}() is "cuda" unless the caller says otherwise',
                    )
        for node in source.nodes(ast.AnnAssign):
            assert isinstance(node, ast.AnnAssign)
            if (
                isinstance(source.parents[node], ast.ClassDef)
                and isinstance(node.value, ast.Constant)
                and node.value.value == "cuda"
                and isinstance(node.target, ast.Name)
            ):
                yield Match(
                    node, node.target.id, f'the field `{node.target.id}` is "cuda" unless its user says otherwise'
                )

    def judge(self, context: Context, match: Match) -> Judgement | None:
        node = match.node
        if out_of_scope(context, node):
            return None
        # The parameter is part of the signature: what the body does with "cuda" does not make the default right.
        if (only := context.cuda_only(node)) and only.by_name:
            return None
        function = (
            context.source.parents.get(context.source.parents.get(node, node)) if isinstance(node, ast.arg) else None
        )
        if isinstance(function, FUNCTIONS) and unused_default(context, function, match.about):
            return review(0.3, "every call in the tree passes the argument")
        if context.in_tests:
            return review(0.45, "a helper of tests; the device is often passed by its caller")
        return defect(0.8, "the default names one vendor's device", "the module, class and function are general")

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        summary = "default to None and take the current accelerator in the body"
        argument = match.node
        if not isinstance(argument, ast.arg):
            return Rewrite(Level.DISPLAY, summary, "a field: where it is resolved depends on the class")
        source = context.source
        function = next(up for up in source.ancestors(argument) if isinstance(up, FUNCTIONS))
        if reason := may_be_scripted(context, function):
            return Rewrite(Level.DISPLAY, summary, f"{reason}, and TorchScript knows no torch.accelerator")
        default = next(value for arg, value in defaults(function) if arg is argument)
        body = [item for item in function.body if not _is_docstring(item)] or function.body[-1:]
        first = body[0]
        line_start = source.offset(first.lineno, 0)
        indent = source.data[line_start : source.span(first)[0]]
        if indent.strip(b" \t") or _is_docstring(first) or isinstance(first, (*FUNCTIONS, ast.ClassDef)):
            return Rewrite(Level.DISPLAY, summary, "the body leaves no line for it")
        edits = [Edit(*source.span(default), "None")]
        if argument.annotation is not None:
            text = source.text(argument.annotation)
            if "None" not in text and "Optional" not in text:
                if not text.replace(".", "").replace("_", "").isalnum():
                    return Rewrite(Level.DISPLAY, summary, "the annotation is not a plain name")
                end = source.span(argument.annotation)[1]
                edits.insert(0, Edit(end, end, " | None"))
        taken = {name.id for name in ast.walk(function) if isinstance(name, ast.Name)} | {
            a.arg for a, _ in defaults(function)
        }
        variable = "accelerator" if "accelerator" not in taken else "current_accelerator"
        space = indent.decode()
        name = argument.arg
        text = (
            f"{space}if {name} is None:\n{space}    {variable} = torch.accelerator.current_accelerator()\n"
            f'{space}    {name} = {variable}.type if {variable} is not None else "cuda"\n'
        )
        edits.append(Edit(line_start, line_start, text))
        return Rewrite(
            Level.UNSAFE, summary, "the signature changes; documentation has to follow", tuple(edits), ("torch",)
        )


def defaults(function: FunctionNode) -> Iterator[tuple[ast.arg, ast.expr]]:
    """Parameters with their default expressions."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield argument, default


def unused_default(context: Context, function: FunctionNode, name: str) -> bool:
    """Whether the tree calls a function, and each call passes the argument: the default is dead."""
    scope = context.source.parents.get(function)
    called = function.name
    positional = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
    if isinstance(scope, ast.ClassDef):
        if function.name.startswith("__") and function.name != "__init__":
            return False
        called = scope.name if function.name == "__init__" else function.name
        positional = positional[1:]
    if not called.startswith("_") and isinstance(scope, ast.ClassDef):
        return False  # public: users call it too
    calls = context.project.calls(called)
    if not calls:
        return False
    index = positional.index(name) if name in positional else None
    return all(
        call.starred or name in call.keywords or (index is not None and call.positional > index) for call in calls
    )


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
