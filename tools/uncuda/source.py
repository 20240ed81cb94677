"""One file: its bytes, its tree with parents, its imports, and byte offsets for edits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
ScopeNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Fields that never hold a node that a rule asks about: names, contexts, operators, literal values.
_PLAIN_FIELDS = frozenset(
    {
        "id",
        "ctx",
        "attr",
        "kind",
        "name",
        "asname",
        "op",
        "ops",
        "arg",
        "type_comment",
        "level",
        "module",
        "names",
        "is_async",
    }
    | {"conversion", "simple", "type_ignores", "rest", "kwd_attrs", "tag", "str"}
)


_CHILD_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: ()}


def _child_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    fields = _CHILD_FIELDS.get(kind)
    if fields is None:
        fields = _CHILD_FIELDS[kind] = tuple(name for name in kind._fields if name not in _PLAIN_FIELDS)
    return fields


class Source:
    """A parsed file.

    Attributes:
        path: relative to the scanned tree, with forward slashes.
        module: dotted name of the module, as far as the path tells.
        data: the bytes; edits count in them.
    """

    def __init__(self, path: str, data: bytes, tree: ast.Module) -> None:
        self.path = path
        self.module = module_name(path)
        self.data = data
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        self.by_type: dict[type[ast.AST], list[ast.AST]] = {}
        self._walk()
        self.imports = self._read_imports()

    def _walk(self) -> None:
        # One explicit walk for all rules; it costs about as much as the parse, so it visits what can hold nodes only.
        parents, by_type = self.parents, self.by_type
        stack: list[ast.AST] = [self.tree]
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind in by_type:
                by_type[kind].append(node)
            else:
                by_type[kind] = [node]
            for name in _child_fields(kind):
                value = getattr(node, name, None)
                if value.__class__ is list:
                    for item in value:
                        if isinstance(item, ast.AST):
                            parents[item] = node
                    stack.extend([item for item in value if isinstance(item, ast.AST)])
                elif value is not None:
                    parents[value] = node
                    stack.append(value)

    def nodes(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Every node of these types, in no particular order."""
        for kind in kinds:
            yield from self.by_type.get(kind, ())

    @cached_property
    def calls(self) -> list[tuple[ast.Call, str]]:
        """Every call of a dotted name, with that name."""
        found = []
        for node in self.nodes(ast.Call):
            assert isinstance(node, ast.Call)
            dotted = self.dotted(node.func)
            if dotted is not None:
                found.append((node, dotted))
        return found

    def _read_imports(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for node in self.nodes(ast.Import):
            assert isinstance(node, ast.Import)
            for alias in node.names:
                if alias.asname:
                    found[alias.asname] = alias.name
                else:
                    head = alias.name.partition(".")[0]
                    found[head] = head
        for node in self.nodes(ast.ImportFrom):
            assert isinstance(node, ast.ImportFrom)
            base = absolute(self.module, self.path.endswith("__init__.py"), node)
            for alias in node.names:
                found[alias.asname or alias.name] = f"{base}.{alias.name}" if base else alias.name
        return found

    def dotted(self, node: ast.AST) -> str | None:
        """The dotted name that an expression means, with the file's aliases resolved; None for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        head = self.imports.get(node.id, node.id)
        return ".".join([head, *reversed(parts)])

    @cached_property
    def _line_starts(self) -> list[int]:
        # `ast` does not count a byte order mark as a column.
        starts = [3 if self.data.startswith(b"\xef\xbb\xbf") else 0]
        position = self.data.find(b"\n")
        while position >= 0:
            starts.append(position + 1)
            position = self.data.find(b"\n", position + 1)
        return starts

    def offset(self, line: int, column: int) -> int:
        """Byte offset of a position as `ast` counts (1-based line, UTF-8 byte column)."""
        return self._line_starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
        """First byte and the byte after the last one of a node."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def text(self, node: ast.expr | ast.stmt | ast.arg) -> str:
        """The source of a node as it stands in the file."""
        start, end = self.span(node)
        return self.data[start:end].decode("utf-8", "replace")

    def line(self, number: int) -> bytes:
        """One line without its end."""
        start = self._line_starts[number - 1]
        end = self._line_starts[number] if number < len(self._line_starts) else len(self.data)
        return self.data[start:end].rstrip(b"\r\n")

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the parent of a node up to the module."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def scopes(self, node: ast.AST) -> list[ScopeNode]:
        """Enclosing classes and functions, innermost first."""
        return [up for up in self.ancestors(node) if isinstance(up, (*FUNCTIONS, ast.ClassDef))]

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost enclosing function."""
        return next((up for up in self.ancestors(node) if isinstance(up, FUNCTIONS)), None)

    def scope_name(self, node: ast.AST) -> str:
        """Dotted names of the enclosing classes and functions."""
        return ".".join(scope.name for scope in reversed(self.scopes(node)))

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that holds a node."""
        if isinstance(node, ast.stmt):
            return node
        return next((up for up in self.ancestors(node) if isinstance(up, ast.stmt)), None)


def module_name(path: str) -> str:
    """Dotted module name of a relative path (``torch/cuda/__init__.py`` -> ``torch.cuda``)."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def absolute(module: str, is_package: bool, node: ast.ImportFrom) -> str:
    """The module that a from-import names, relative ones resolved."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    keep = len(parts) - node.level + (1 if is_package else 0)
    return ".".join([*parts[: max(keep, 0)], *([node.module] if node.module else [])])
