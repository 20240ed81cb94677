"""One direction of imports, over the whole repository."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "torch_conformance": ROOT / "conformance" / "torch_conformance",
    "neuron_ref": ROOT / "reference_backend" / "neuron_ref",
    "uncuda": ROOT / "tools" / "uncuda",
}
FROM_UNCUDA = ("uncuda.verify", "uncuda.confirm")
SHARED = ("case", "outcome", "backend", "codec", "frame")
"""Modules of the suite that device processes import."""


def sources(package: str) -> list[Path]:
    return [path for path in sorted(PACKAGES[package].rglob("*.py")) if "__pycache__" not in path.parts]


def module_of(package: str, path: Path) -> str:
    parts = path.relative_to(PACKAGES[package].parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(package: str, path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it, relative ones resolved."""
    module = module_of(package, path)
    base = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    out: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            out.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = base[: len(base) - node.level + 1] if node.level else []
            target = ".".join([*start, *([node.module] if node.module else [])])
            out.add(target)
            out.update(f"{target}.{alias.name}" for alias in node.names)
    return out


def top(name: str) -> str:
    return name.partition(".")[0]


def edges(package: str) -> list[tuple[str, str]]:
    return [(module_of(package, path), name) for path in sources(package) for name in imports_of(package, path)]


@pytest.mark.parametrize("package", ["torch_conformance", "uncuda"])
def test_nobody_imports_the_reference_device(package: str) -> None:
    assert [edge for edge in edges(package) if top(edge[1]) == "neuron_ref"] == []


def test_the_reference_device_imports_neither_of_the_others() -> None:
    assert [edge for edge in edges("neuron_ref") if top(edge[1]) in ("torch_conformance", "uncuda")] == []


def test_the_suite_does_not_import_uncuda() -> None:
    assert [edge for edge in edges("torch_conformance") if top(edge[1]) == "uncuda"] == []


def test_uncuda_reaches_the_suite_from_verify_and_confirm_only() -> None:
    found = [edge for edge in edges("uncuda") if top(edge[1]) == "torch_conformance"]
    assert [edge for edge in found if not edge[0].startswith(FROM_UNCUDA)] == []


def test_outside_of_device_the_suite_imports_neither_torch_nor_device_code() -> None:
    found = [edge for edge in edges("torch_conformance") if not edge[0].startswith("torch_conformance.device")]
    assert [edge for edge in found if top(edge[1]) in ("torch", "numpy")] == []
    assert [edge for edge in found if edge[1].startswith("torch_conformance.device")] == []


def test_device_code_imports_only_the_shared_types_of_the_suite() -> None:
    allowed = ("torch_conformance.device", *(f"torch_conformance.{name}" for name in SHARED))
    found = [edge for edge in edges("torch_conformance") if edge[0].startswith("torch_conformance.device")]
    assert [
        edge
        for edge in found
        if top(edge[1]) == "torch_conformance" and edge[1] != "torch_conformance" and not edge[1].startswith(allowed)
    ] == []


def test_the_suite_does_not_know_the_reference_device_by_name() -> None:
    word = "neu" + "ron"
    files = [
        path for path in PACKAGES["torch_conformance"].rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    assert files
    assert [path.name for path in files if word in path.read_text(encoding="utf-8").lower()] == []
