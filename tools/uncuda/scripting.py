"""Code that TorchScript may compile: it knows neither torch.accelerator nor the C calls that name the backend."""

from __future__ import annotations

import ast

from .context import Context
from .source import FUNCTIONS


def may_be_scripted(context: Context, node: ast.AST) -> str | None:
    """Why a node may be compiled by TorchScript; None when nothing says so."""
    source = context.source
    scopes = source.scopes(node)
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        scopes = [node, *scopes]
    for scope in scopes:
        for decorator in scope.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            dotted = source.dotted(target) or ""
            if dotted.startswith("torch.jit.") and dotted.rpartition(".")[2] not in ("unused", "ignore"):
                return f"{scope.name} is compiled by TorchScript"
            if dotted.startswith("torch.jit."):
                return None
        if isinstance(scope, ast.ClassDef):
            bases = [source.dotted(base) or "" for base in scope.bases]
            if any(base.endswith(("Module", "ScriptModule")) or base.startswith("torch.nn.") for base in bases):
                if _is_initialiser(scopes, scope):
                    return None  # only forward and what it calls are compiled
                return f"{scope.name} is a module, which TorchScript may compile"
    if source.module.startswith(("torch.nn.functional", "torch.functional", "torch.jit")):
        return "functions of this module are compiled by TorchScript"
    return None


def _is_initialiser(scopes: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef], owner: ast.ClassDef) -> bool:
    position = scopes.index(owner)
    return position > 0 and scopes[position - 1].name == "__init__"
