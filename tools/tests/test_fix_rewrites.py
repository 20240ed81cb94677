"""Rewrites: levels, traps, imports, overlap, idempotence, atomic writes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from uncuda.cli import main
from uncuda.finding import Edit
from uncuda.project import Project
from uncuda.rewriting import apply_edits, rewrite_all, write_atomically


def fixed(code: str, unsafe: bool = True) -> str | None:
    result = rewrite_all(Project({"m.py": code.encode()}), "m.py", unsafe)
    return None if result is None else result.after.decode()


def test_a_scripted_function_keeps_its_default() -> None:
    assert fixed('import torch\n@torch.jit.script\ndef f(x: int, device: str = "cuda"):\n    return x\n') is None


def test_the_forward_of_a_module_keeps_the_autocast_call_that_torchscript_knows() -> None:
    code = (
        "import torch\nclass M(torch.nn.Module):\n"
        "    def forward(self, x):\n        d = x.device\n        return torch.is_autocast_enabled()\n"
    )
    assert fixed(code) is None


def test_the_initialiser_of_a_module_may_be_rewritten() -> None:
    code = (
        "import torch\nclass M(torch.nn.Module):\n"
        '    def __init__(self, device="cuda"):\n        self.device = device\n'
    )
    assert "device=None" in (fixed(code) or "")


def test_the_accelerator_is_never_asked_in_a_default_expression() -> None:
    after = fixed('import torch\ndef f(n, device="cuda"):\n    return torch.ones(n, device=device)\n')
    assert after is not None
    function = ast.parse(after).body[1]
    assert isinstance(function, ast.FunctionDef)
    assert "accelerator" not in ast.dump(ast.Tuple(elts=function.args.defaults))


def test_a_constant_list_is_not_rewritten_since_it_would_freeze_the_name() -> None:
    assert fixed('GPUS = ("cuda", "xpu")\n') is None


def test_a_list_in_a_cached_function_is_not_rewritten() -> None:
    code = 'import functools\n@functools.cache\ndef f(kind):\n    return kind in ("cuda", "xpu")\n'
    assert fixed(code) is None


def test_a_gate_changes_with_the_calls_behind_it_or_not_at_all() -> None:
    code = (
        "import torch\ndef f(g):\n"
        "    if torch.cuda.is_available():\n        torch.cuda.synchronize()\n        torch.cuda.set_rng_state(g)\n"
    )
    assert fixed(code) is None


def test_safe_rewrites_leave_unsafe_ones_alone() -> None:
    code = "import torch\ndef f(x):\n    torch.cuda.synchronize()\n    return torch.cuda.current_device()\n"
    assert fixed(code, unsafe=False) == code.replace("cuda.synchronize", "accelerator.synchronize")


def test_synchronize_with_a_device_is_unsafe_because_it_may_be_the_cpu() -> None:
    assert fixed("import torch\ndef f(d):\n    torch.cuda.synchronize(d)\n", unsafe=False) is None


def test_a_missing_import_is_added_after_docstring_and_future_imports() -> None:
    code = '"""Doc."""\nfrom __future__ import annotations\n\nimport os\n\n\ndef f(device="cuda"):\n    return device\n'
    after = fixed(code)
    assert after is not None
    assert after.startswith('"""Doc."""\nfrom __future__ import annotations\n\nimport torch\nimport os\n')


def test_text_that_is_not_ascii_keeps_byte_offsets_right() -> None:
    code = 'import torch\ndef f():\n    é = "ü"; torch.cuda.synchronize()  # ö\n'
    assert fixed(code) == code.replace("cuda.synchronize", "accelerator.synchronize")


def test_carriage_returns_and_a_byte_order_mark_are_kept() -> None:
    data = b"\xef\xbb\xbfimport torch\r\ndef f():\r\n    torch.cuda.synchronize()\r\n"
    result = rewrite_all(Project({"m.py": data}), "m.py", unsafe=True)
    assert result is not None
    assert result.after == data.replace(b"cuda.synchronize", b"accelerator.synchronize")


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_edits(b"abcdef", [Edit(0, 3, "x"), Edit(2, 4, "y")])


def test_writing_keeps_the_mode_and_follows_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "real.py", tmp_path / "link.py"
    target.write_bytes(b"a")
    target.chmod(0o755)
    link.symlink_to(target)
    write_atomically(link, b"b")
    assert link.is_symlink()
    assert target.read_bytes() == b"b"
    assert target.stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.py", "real.py"]


def test_the_command_shows_a_diff_by_default_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.py"
    file.write_text("import torch\ndef f():\n    torch.cuda.synchronize()\n")
    before = file.read_bytes()
    assert main(["fix", str(tmp_path)]) == 1
    assert "+    torch.accelerator.synchronize()" in capsys.readouterr().out
    assert file.read_bytes() == before


def test_the_command_touches_only_files_that_change_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    changed, same = tmp_path / "a.py", tmp_path / "b.py"
    changed.write_text("import torch\ndef f():\n    torch.cuda.synchronize()\n")
    same.write_text("import torch\nx = 'cuda'\n")
    stamp = same.stat().st_mtime_ns, same.stat().st_ino
    assert main(["fix", str(tmp_path), "--write"]) == 0
    assert "torch.accelerator" in changed.read_text()
    assert (same.stat().st_mtime_ns, same.stat().st_ino) == stamp
    stamp = changed.stat().st_mtime_ns, changed.stat().st_ino
    assert main(["fix", str(tmp_path), "--write", "--unsafe"]) == 0
    assert (changed.stat().st_mtime_ns, changed.stat().st_ino) == stamp


def test_a_device_keyword_becomes_positional_behind_a_gate_too() -> None:
    code = "import torch\ndef f(d):\n    if torch.cuda.is_available():\n        torch.cuda.synchronize(device=d)\n"
    assert "torch.accelerator.synchronize(d)" in (fixed(code) or "")
