"""A torch tree of five files and a patch series over it: what the tests of series, overlays and evidence stand on."""

from __future__ import annotations

import subprocess
from pathlib import Path

from uncuda.series import Series, load_series

NUMBERS = "".join(f"line_{number} = {number}\n" for number in range(1, 41))


def make_tree(root: Path, version: str = "2.13.0") -> Path:
    """Write a torch tree below ``root`` and give ``root`` back."""
    files = {
        "torch/__init__.py": "from torch.version import __version__\n",
        "torch/version.py": f"__version__ = '{version}'\ngit_version = 'abc123'\n",
        "torch/numbers.py": NUMBERS,
        "torch/nn/__init__.py": "",
        "torch/nn/gate.py": "DEVICE = 'cuda'\n",
        "torch/lib/libtorch.so": "library",
        "torch/include/c10/macros.h": "#pragma once\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def diff(name: str, before: str, after: str, folder: Path) -> str:
    """The git diff that turns ``before`` into ``after`` under the path ``name``."""
    work = folder / "diff"
    for side, text in (("a", before), ("b", after)):
        (work / side / name).parent.mkdir(parents=True, exist_ok=True)
        (work / side / name).write_text(text)
    done = subprocess.run(
        ["git", "diff", "--no-index", "--no-prefix", f"a/{name}", f"b/{name}"], cwd=work, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    return done.stdout


def write_topic(root: Path, topic: str, patch: str, **values: str) -> Path:
    """Write a topic folder below ``root``; ``values`` replace lines of its ``topic.toml``, an empty one removes it."""
    folder = root / topic
    folder.mkdir(parents=True, exist_ok=True)
    lines = {
        "schema": "1",
        "title": f'"Cure {topic}"',
        "taxonomy": '["A1"]',
        "findings": '["U001"]',
        "cases": '["a/b/c/-/-"]',
        "cuda": '"Nothing."',
        "others": '"A device is served."',
        "status": '"prepared"',
        "bases": '["2.13.0"]',
        **values,
    }
    (folder / "topic.toml").write_text("".join(f"{key} = {value}\n" for key, value in lines.items() if value))
    (folder / "cover.md").write_text(f"# {topic}\n")
    (folder / "0001-cure.patch").write_text(patch)
    return folder


def make_series(root: Path) -> Series:
    """Two topics: ``gate`` keeps the length of its file, ``numbers`` changes line 30 of a longer one."""
    write_topic(root, "gate", diff("torch/nn/gate.py", "DEVICE = 'cuda'\n", "DEVICE = 'meta'\n", root.parent))
    changed = NUMBERS.replace("line_30 = 30", "line_30 = 3000")
    write_topic(root, "numbers", diff("torch/numbers.py", NUMBERS, changed, root.parent))
    (root / "order").write_text("# topics\ngate\nnumbers\n")
    return load_series(root)
