"""What a rule may know about the rest of the project: constants, re-exports, call sites, writes to tables.

Read from bytes by pieces: only a statement or a call that matters is parsed, so that asking costs little. Read-only.
"""

from __future__ import annotations

import ast
import copy
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from .names import DEVICE_TYPES, IN_TREE, SPECIFIC_TOKENS_PATTERN, says_cuda_only
from .source import absolute, module_name

_CONSTANT = re.compile(
    rb"^(?P<name>[A-Za-z_]\w*)\s*(?::[^=\n]+)?=\s*(?P<open>[\[({]|frozenset\(|set\(|OrderedSet\()", re.MULTILINE
)
_FROM = re.compile(rb"^from\s+(?P<base>[.\w]+)\s+import\s+(?P<names>\([^)]*\)|[^\n]*)", re.MULTILINE)
_HEADER = re.compile(rb"^(\s*)(if|elif|else|for|while|with|def|class|async|try|except|finally)\b(.*)")
_GUARDING = re.compile(rb"cuda|CUDA|nccl|hip\b|cudnn")


@dataclass(frozen=True, slots=True)
class DeviceTable:
    """A module constant that holds device types.

    Attributes:
        dotted: module and name.
        kind: ``list`` or ``dict``.
        devices: the device types in it.
        open: whether PrivateUse1 is in it, or something outside adds to it.
    """

    dotted: str
    kind: str
    devices: tuple[str, ...]
    open: bool


@dataclass(frozen=True, slots=True)
class CallShape:
    """How one call passes its arguments; `starred` when the number is not known."""

    path: str
    positional: int
    keywords: frozenset[str]
    starred: bool


class Project:
    """A read-only index over the files of one tree."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files
        self._calls: dict[str, tuple[CallShape, ...]] = {}
        self._reached: dict[str, bool] = {}
        self._exports: dict[str, dict[str, str]] = {}

    def with_file(self, path: str, data: bytes) -> Project:
        """The same project with other content for one file; what the index knows of the rest is kept."""
        _ = self.tables, self._module_paths  # read once, for every view
        view = copy.copy(self)
        view.files = {**self.files, path: data}
        return view

    @cached_property
    def _module_paths(self) -> dict[str, str]:
        return {module_name(path): path for path in self.files}

    @cached_property
    def tables(self) -> dict[str, DeviceTable]:
        """Module constants that list or map device types without room for others, by dotted name."""
        found: dict[str, DeviceTable] = {}
        for path, data in self.files.items():
            if b"cuda" not in data and b"xpu" not in data:
                continue
            for match in _CONSTANT.finditer(data):
                table = self._read_table(path, data, match)
                if table is not None:
                    found[table.dotted] = table
        return found

    def _read_table(self, path: str, data: bytes, match: re.Match[bytes]) -> DeviceTable | None:
        start = match.start("open")
        piece = data[start : start + 6000]
        end = _closing(piece)
        if end is None or not (b"cuda" in piece[:end] or b"xpu" in piece[:end]):
            return None
        try:
            node = ast.parse(piece[:end].decode("utf-8", "replace"), mode="eval").body
        except SyntaxError:
            return None
        devices, kind, private = table_devices(node)
        if len(set(devices) & IN_TREE) < 2:
            return None
        name = match["name"].decode()
        return DeviceTable(f"{module_name(path)}.{name}", kind, tuple(devices), private or self._is_written(name))

    def _is_written(self, name: str) -> bool:
        writes = re.compile(
            rb"\b%b(?:\[[^\]\n]+\]\s*=[^=]|\.(?:update|setdefault|append|add|extend|insert)\()" % name.encode()
        )
        return any(name.encode() in data and writes.search(data) for data in self.files.values())

    def is_written(self, name: str) -> bool:
        """Whether some code of the project adds to a table of this name: it is a registry, open to others."""
        return self._is_written(name)

    def resolve(self, dotted: str, depth: int = 5) -> str:
        """Follow re-exports: the dotted name where something is defined."""
        module, _, name = dotted.rpartition(".")
        if depth and module in self._module_paths:
            target = self._exports_of(module).get(name)
            if target is not None and target != dotted:
                return self.resolve(target, depth - 1)
        return dotted

    def table(self, dotted: str) -> DeviceTable | None:
        """The device table that a dotted name means, re-exports followed."""
        return self.tables.get(dotted) or self.tables.get(self.resolve(dotted))

    def _exports_of(self, module: str) -> dict[str, str]:
        known = self._exports.get(module)
        if known is not None:
            return known
        path = self._module_paths[module]
        found: dict[str, str] = {}
        for match in _FROM.finditer(self.files[path]):
            try:
                statement = ast.parse(match[0].decode("utf-8", "replace")).body[0]
            except SyntaxError:
                continue
            if isinstance(statement, ast.ImportFrom):
                base = absolute(module, path.endswith("__init__.py"), statement)
                for alias in statement.names:
                    found[alias.asname or alias.name] = f"{base}.{alias.name}"
        self._exports[module] = found
        return found

    def calls(self, name: str) -> tuple[CallShape, ...]:
        """Every call of a function or class of this name, wherever it is defined."""
        known = self._calls.get(name)
        if known is None:
            known = self._calls[name] = tuple(self._read_calls(name))
        return known

    def _read_calls(self, name: str) -> Iterator[CallShape]:
        call = re.compile(rb"(?<!def )(?<!class )(?<![\w])%b\(" % re.escape(name.encode()))
        for path, data in self.files.items():
            if name.encode() not in data:
                continue
            for match in call.finditer(data):
                piece = data[match.end() - 1 : match.end() + 4000]
                end = _closing(piece)
                if end is None:
                    continue
                try:
                    node = ast.parse(textwrap.dedent("f" + piece[:end].decode("utf-8", "replace")), mode="eval").body
                except SyntaxError:
                    continue
                if isinstance(node, ast.Call):
                    starred = any(isinstance(arg, ast.Starred) for arg in node.args)
                    starred = starred or any(word.arg is None for word in node.keywords)
                    keywords = frozenset(word.arg for word in node.keywords if word.arg)
                    yield CallShape(path, len(node.args), keywords, starred)

    def reached_generically(self, name: str) -> bool:
        """Whether code that is not about CUDA calls a function of this name without asking for CUDA first."""
        known = self._reached.get(name)
        if known is None:
            self._reached[name] = False  # a cycle of CUDA-named functions proves nothing
            known = self._reached[name] = self._read_reached(name)
        return known

    def _read_reached(self, name: str) -> bool:
        call = re.compile(rb"(?<!def )(?<![\w])%b\(" % re.escape(name.encode()))
        for path, data in self.files.items():
            if name.encode() not in data or says_cuda_only(path.removesuffix(".py")):
                continue
            for match in call.finditer(data):
                headers = _headers(data, match.start())
                if headers is None or any(
                    word in (b"if", b"elif") and _GUARDING.search(rest) for word, rest in headers
                ):
                    continue
                owners = [
                    rest.split(b"(")[0].split(b":")[0].decode().split()[-1:]
                    for word, rest in headers
                    if word in (b"def", b"class")
                ]
                owner_names = [owner[0] for owner in owners if owner]
                if not owner_names or any(SPECIFIC_TOKENS_PATTERN.search(owner) for owner in owner_names):
                    continue
                cuda_owners = [owner for owner in owner_names if says_cuda_only(owner)]
                if not cuda_owners or (cuda_owners[0] != name and self.reached_generically(cuda_owners[0])):
                    return True
        return False


def table_devices(node: ast.expr) -> tuple[list[str], str, bool]:
    """Device types in a literal, its kind, and whether anything in it is not a literal device type (so: maybe open).

    A table with a string that is no device type is about something else: no devices are given.
    """
    if isinstance(node, ast.Dict):
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
        if any(key not in DEVICE_TYPES for key in keys):
            return [], "dict", True
        return keys, "dict", len(keys) < len(node.keys)
    if isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        values = [item.value for item in node.elts if isinstance(item, ast.Constant)]
        if any(not isinstance(value, str) or value not in DEVICE_TYPES for value in values):
            return [], "list", True
        return [str(value) for value in values], "list", len(values) < len(node.elts)
    return [], "list", True


def _closing(piece: bytes) -> int | None:
    """The end of the bracketed expression that a piece begins with; None when it does not end in the piece."""
    depth = 0
    quote = 0
    position = 0
    while position < len(piece):
        byte = piece[position]
        if quote:
            if byte == 0x5C:
                position += 1
            elif byte == quote:
                quote = 0
        elif byte in b"\"'":
            quote = byte
        elif byte in b"([{":
            depth += 1
        elif byte in b")]}":
            depth -= 1
            if depth == 0:
                return position + 1
        elif byte == 0x23:
            position = piece.find(b"\n", position)
            if position < 0:
                return None
        position += 1
    return None


def _headers(data: bytes, position: int) -> list[tuple[bytes, bytes]] | None:
    """Block headers around a position by indentation, innermost first; None when the line is a comment or string."""
    start = data.rfind(b"\n", 0, position) + 1
    line = data[start : data.find(b"\n", position)]
    stripped = line.lstrip()
    if stripped.startswith((b"#", b'"', b"'")):
        return None
    indent = len(line) - len(stripped)
    headers: list[tuple[bytes, bytes]] = []
    if match := _HEADER.match(line):
        headers.append((match[2], match[3]))
    while indent and start:
        end = start - 1
        start = data.rfind(b"\n", 0, end) + 1
        line = data[start:end]
        stripped = line.lstrip()
        depth = len(line) - len(stripped)
        if not stripped or depth >= indent or stripped.startswith((b"#", b")", b"]")):
            continue
        if match := _HEADER.match(line):
            headers.append((match[2], match[3]))
            indent = depth
    return headers
