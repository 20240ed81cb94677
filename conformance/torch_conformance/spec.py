"""Read a spec file: strict, so that a typo is an error and not a silent default."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomllib

from .backend import CAPABILITIES, STARTS, BackendSpec
from .errors import UsageError, did_you_mean

FILE_NAME = "torch_conformance.toml"
SCHEMA = 1
_CALLABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def read_spec(path: Path) -> BackendSpec:
    """Read the spec file at ``path``; paths in it are relative to its folder.

    Raises:
        UsageError: naming file, key, what was got and what was wanted.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the spec file {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from error
    return _Reader(path.absolute(), data).spec()


class _Reader:
    """One spec file while it is checked."""

    def __init__(self, path: Path, data: dict[str, Any]) -> None:
        self._path = path
        self._data = data

    def spec(self) -> BackendSpec:
        for key in self._data:
            if key not in _KEYS:
                raise self._error(key, f"unknown key, wanted one of {', '.join(_KEYS)}{did_you_mean(key, _KEYS)}")
        for key in ("schema", "name", "device"):
            if key not in self._data:
                raise self._error(key, "missing, and every spec file needs it")
        if self._data["schema"] != SCHEMA:
            raise self._error("schema", f"got {self._data['schema']!r}, wanted {SCHEMA}")
        values: dict[str, Any] = {}
        for key, value in self._data.items():
            if key != "schema":
                field, read = _KEYS[key]
                values[field] = read(self, key, value)
        return dataclasses.replace(BackendSpec(name="", device=""), source=str(self._path), **values)

    def _error(self, key: str, what: str) -> UsageError:
        return UsageError(f"{self._path}: key {key!r}: {what}")

    def text(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self._error(key, f"got {value!r}, wanted a text that is not empty")
        return value

    def name(self, key: str, value: Any) -> str:
        text = self.text(key, value)
        if not re.fullmatch(r"[\w.+-]+", text):
            raise self._error(key, f"got {text!r}, wanted letters, digits, '_', '.', '+' and '-' (file names use it)")
        return text

    def callable(self, key: str, value: Any) -> str:
        text = self.text(key, value)
        if not _CALLABLE.fullmatch(text):
            raise self._error(key, f"got {text!r}, wanted 'module:function'")
        return text

    def texts(self, key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self._error(key, f"got {value!r}, wanted a list of texts")
        return tuple(value)

    def claims(self, key: str, value: Any) -> tuple[str, ...]:
        for claim in self.texts(key, value):
            if claim not in CAPABILITIES:
                known = ", ".join(CAPABILITIES)
                raise self._error(
                    key, f"unknown claim {claim!r}, wanted some of {known}{did_you_mean(claim, CAPABILITIES)}"
                )
        return tuple(value)

    def environment(self, key: str, value: Any) -> dict[str, str]:
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise self._error(key, f'got {value!r}, wanted a table of texts such as {{ NAME = "value" }}')
        return {name: os.path.expandvars(text) for name, text in value.items()}

    def count(self, key: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self._error(key, f"got {value!r}, wanted a whole number of at least 1")
        return value

    def seconds(self, key: str, value: Any) -> float:
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value <= 0:
            raise self._error(key, f"got {value!r}, wanted a number of seconds above 0")
        return float(value)

    def start(self, key: str, value: Any) -> str:
        text = self.text(key, value)
        if text not in STARTS:
            raise self._error(key, f"got {text!r}, wanted one of {', '.join(STARTS)}{did_you_mean(text, STARTS)}")
        return text

    def file(self, key: str, value: Any) -> str:
        # Not resolved: the link in a virtual environment's bin is what makes it that environment.
        found = os.path.normpath(self._path.parent / Path(self.text(key, value)).expanduser())
        if not Path(found).exists():
            raise self._error(key, f"got {value!r}, but {found} does not exist")
        return found

    def program(self, key: str, value: Any) -> str:
        if "/" not in self.text(key, value):
            return str(value)  # looked up on PATH when it is started
        return self.file(key, value)

    def later_file(self, key: str, value: Any) -> str:
        """A file that `expect update` may still have to create."""
        return os.path.normpath(self._path.parent / Path(self.text(key, value)).expanduser())

    def files(self, key: str, value: Any) -> tuple[str, ...]:
        return tuple(self.file(key, item) for item in self.texts(key, value))


_KEYS: dict[str, tuple[str, Callable[[_Reader, str, Any], Any]]] = {
    "schema": ("schema", _Reader.count),
    "name": ("name", _Reader.name),
    "python": ("python", _Reader.program),
    "import": ("module", _Reader.text),
    "activate": ("activate", _Reader.callable),
    "device": ("device", _Reader.text),
    "env": ("env", _Reader.environment),
    "devices": ("devices", _Reader.count),
    "claims": ("claims", _Reader.claims),
    "dtypes": ("dtypes", _Reader.texts),
    "expectations": ("expectations", _Reader.later_file),
    "faults": ("faults", _Reader.callable),
    "timeout_s": ("timeout_s", _Reader.seconds),
    "start": ("start", _Reader.start),
    "path": ("path", _Reader.files),
}
"""Each key of a spec file: the field of `BackendSpec` that it fills, and how it is read."""
