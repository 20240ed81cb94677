"""The one module that knows JSON: the frozen dataclasses of this package to JSON objects and back.

Standard library only and Python 3.10 clean: the parent and the device process both import this module.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Iterable
from enum import Enum
from typing import Any, TypeVar

from .case import Case, CaseId

T = TypeVar("T")


class CodecError(ValueError):
    """JSON that does not have the form of the type it should become."""


def to_json(value: Any) -> Any:
    """Turn a dataclass (or a container of them) into what `json.dumps` takes; fields at their default stay in."""
    if isinstance(value, CaseId):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_json(getattr(value, name)) for name in _fields(type(value))}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def from_json(kind: type[T], data: Any) -> T:
    """Build a ``kind`` from parsed JSON. Fields that are missing take their default.

    Raises:
        CodecError: naming the type, the field, what was got and what was wanted.
    """
    return typing.cast(T, _convert(kind, data, kind.__name__))


def dumps(value: Any) -> str:
    """One line of JSON for a dataclass or a plain value."""
    return json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":"))


def loads(kind: type[T], text: str) -> T:
    """Parse one line of JSON into a ``kind``.

    Raises:
        CodecError: when it is not JSON or not of that form.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise CodecError(f"{kind.__name__}: got text that is not JSON ({error}): {text[:80]!r}") from error
    return from_json(kind, data)


@functools.cache
def _fields(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {item.name: hints[item.name] for item in dataclasses.fields(kind)}


def _convert(kind: Any, data: Any, where: str) -> Any:
    if kind is CaseId:
        return CaseId.parse(_expect(data, str, where))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        _expect(data, dict, where)
        hints = _fields(kind)
        unknown = sorted(set(data) - set(hints))
        if unknown:
            raise CodecError(f"{where}: got the unknown field {unknown[0]!r}, wanted one of {', '.join(hints)}")
        found = {name: _convert(hints[name], item, f"{where}.{name}") for name, item in data.items()}
        try:
            return kind(**found)
        except TypeError as error:
            raise CodecError(f"{where}: {error}") from error
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(data)
        except ValueError as error:
            wanted = ", ".join(str(item.value) for item in kind)
            raise CodecError(f"{where}: got {data!r}, wanted one of {wanted}") from error
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return tuple(_convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(_expect(data, list, where)))
    if origin is list:
        return [_convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(_expect(data, list, where))]
    if origin is dict:
        return {key: _convert(arguments[1], item, f"{where}.{key}") for key, item in _expect(data, dict, where).items()}
    if origin in (typing.Union, types.UnionType):
        if data is None:
            return None
        return _convert(next(item for item in arguments if item is not type(None)), data, where)
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if isinstance(kind, type):
        return _expect(data, kind, where)
    return data


def _expect(data: Any, kind: type, where: str) -> Any:
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise CodecError(f"{where}: got {data!r}, wanted a {kind.__name__}")
    return data


def cases_to_rows(cases: Iterable[Case]) -> str:
    """Cases as JSON rows: thousands are read on the path of every command, and rows are read ten times faster."""
    rows = [[str(case.id), *(getattr(case, name) for name in _CASE_COLUMNS)] for case in cases]
    return json.dumps({"columns": ["id", *_CASE_COLUMNS], "rows": rows}, separators=(",", ":"))


def cases_from_rows(text: str) -> list[Case]:
    """Read what `cases_to_rows` wrote.

    Raises:
        CodecError: when it is something else, or was written with other columns.
    """
    try:
        data = json.loads(text)
        if data["columns"] != ["id", *_CASE_COLUMNS]:
            raise CodecError(f"cases: got the columns {data['columns']}, wanted {['id', *_CASE_COLUMNS]}")
        return [
            Case(CaseId(*name.split("/")), profile, cost, tuple(needs), tuple(requires), *rest)
            for name, profile, cost, needs, requires, *rest in data["rows"]
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise CodecError(f"cases: got text that is not a list of cases: {error}") from error


_CASE_COLUMNS = tuple(item.name for item in dataclasses.fields(Case))[1:]
