"""A patch: one concern, one folder under ``patches/``, with the data that a machine checks in its ``topic.toml``."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

SCHEMA = 1
STATUSES = {
    "prepared": "written and proven here; no person has reviewed it yet",
    "reviewed": "a person has read it and answers for it",
    "proposed": "a person has sent it upstream",
    "landed": "upstream has it, or an equal cure",
    "withdrawn": "no longer offered; the cover says why",
}
RELATIONS = {
    "tracks": "the upstream issue that asks for this kind of change",
    "overlaps": "open work that touches the same place or the same defect",
    "precedent": "work of the same kind that was accepted or discussed",
}
_FINDING = re.compile(r"[UC]\d{3}")
_TAXONOMY = re.compile(r"[A-H][1-9]?")
_TOUCHED = re.compile(r"^diff --git a/(\S+) b/(\S+)$", re.MULTILINE)


class PatchError(Exception):
    """A topic folder that does not hold a well-formed patch."""


@dataclass(frozen=True, slots=True)
class Relation:
    """How a patch relates to an issue or pull request of pytorch/pytorch.

    Attributes:
        number: of the issue or pull request.
        relation: one of `RELATIONS`.
        note: what exactly they share.
    """

    number: int
    relation: str
    note: str


@dataclass(frozen=True, slots=True)
class Patch:
    """One concern and everything that is claimed for it.

    Attributes:
        topic: the name of its folder.
        folder: where it lies.
        title: one line, as the title of a pull request.
        taxonomy: ids of the kinds of assumption it removes (``A1``, ``B6``).
        findings: codes of the finder's rules that point at it (``U001``).
        cases: ids of conformance cases that fail before and pass after.
        cuda: what changes for CUDA.
        others: what changes for the CPU and every other device.
        status: one of `STATUSES`.
        bases: torch versions it is written for; the evidence is made on the first.
        upstream: what is known of the same matter upstream.
        files: the ``*.patch`` files, in the order in which they apply.
    """

    topic: str
    folder: Path
    title: str
    taxonomy: tuple[str, ...]
    findings: tuple[str, ...]
    cases: tuple[str, ...]
    cuda: str
    others: str
    status: str
    bases: tuple[str, ...]
    upstream: tuple[Relation, ...]
    files: tuple[Path, ...]

    @property
    def touched(self) -> tuple[str, ...]:
        """Paths that the patch changes, relative to the folder that holds ``torch/``."""
        names = {name for file in self.files for pair in _TOUCHED.findall(_text(file)) for name in pair}
        return tuple(sorted(names))

    @property
    def digest(self) -> str:
        """Of everything that evidence speaks about: the patch files in order, and the cases named for them."""
        state = hashlib.sha256()
        for file in self.files:
            state.update(f"{file.name}\0".encode())
            state.update(hashlib.sha256(file.read_bytes()).digest())
        for case in sorted(self.cases):
            state.update(f"case\0{case}\0".encode())
        return state.hexdigest()


def load_patch(folder: Path) -> Patch:
    """Read one topic folder.

    Raises:
        PatchError: naming the file, the key, what was got and what was wanted.
    """
    where = folder / "topic.toml"
    try:
        data = tomllib.loads(where.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PatchError(f"{folder}: no topic.toml; every topic of the series has one") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PatchError(f"{where}: not TOML: {error}") from error
    read = _Reader(where, data)
    read.only("schema", "title", "taxonomy", "findings", "cases", "cuda", "others", "status", "bases", "upstream")
    if data.get("schema") != SCHEMA:
        raise PatchError(f"{where}: got schema = {data.get('schema')!r}, wanted {SCHEMA}")
    files = tuple(sorted(folder.glob("*.patch")))
    if not files:
        raise PatchError(f"{folder}: no *.patch file")
    for name in ("cover.md", *(file.name for file in files)):
        if not (folder / name).is_file() or not (folder / name).stat().st_size:
            raise PatchError(f"{folder / name}: missing or empty")
    patch = Patch(
        topic=folder.name,
        folder=folder,
        title=read.text("title"),
        taxonomy=read.texts("taxonomy", _TAXONOMY),
        findings=read.texts("findings", _FINDING),
        cases=read.texts("cases"),
        cuda=read.text("cuda"),
        others=read.text("others"),
        status=read.choice("status", STATUSES),
        bases=read.texts("bases"),
        upstream=tuple(_relation(where, item) for item in data.get("upstream", [])),
        files=files,
    )
    outside = [name for name in patch.touched if not name.startswith("torch/") or ".." in name.split("/")]
    if outside or not patch.touched:
        raise PatchError(f"{folder}: a patch touches {outside or 'nothing'}, wanted paths under torch/ in git format")
    return patch


class _Reader:
    """Takes checked values out of one TOML table."""

    def __init__(self, where: Path, data: dict[str, Any]) -> None:
        self._where = where
        self._data = data

    def only(self, *known: str) -> None:
        unknown = sorted(set(self._data) - set(known))
        if unknown:
            raise PatchError(f"{self._where}: got the unknown key {unknown[0]!r}, wanted one of {', '.join(known)}")

    def text(self, key: str) -> str:
        value = self._data.get(key)
        if not isinstance(value, str) or not value.strip():
            raise PatchError(f"{self._where}: {key}: got {value!r}, wanted a text that is not empty")
        return value.strip()

    def texts(self, key: str, form: re.Pattern[str] | None = None) -> tuple[str, ...]:
        value = self._data.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
            raise PatchError(f"{self._where}: {key}: got {value!r}, wanted a list of texts with at least one entry")
        for item in value:
            if form is not None and not form.fullmatch(item):
                raise PatchError(f"{self._where}: {key}: got {item!r}, wanted the form {form.pattern}")
        if len(set(value)) != len(value):
            raise PatchError(f"{self._where}: {key}: an entry is there twice")
        return tuple(value)

    def choice(self, key: str, allowed: dict[str, str]) -> str:
        value = self.text(key)
        if value not in allowed:
            raise PatchError(f"{self._where}: {key}: got {value!r}, wanted one of {', '.join(allowed)}")
        return value


def _relation(where: Path, data: Any) -> Relation:
    if not isinstance(data, dict) or not isinstance(data.get("number"), int):
        raise PatchError(f"{where}: upstream: got {data!r}, wanted a table with number, relation and note")
    read = _Reader(where, data)
    read.only("number", "relation", "note")
    return Relation(number=data["number"], relation=read.choice("relation", RELATIONS), note=read.text("note"))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
