"""`uncuda scan` and `uncuda explain` as their users see them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from uncuda.cli import main
from uncuda.reading import MAX_BYTES
from uncuda.rule import Docs, Rule, RuleError, all_rules

BAD = "import torch\ndef f():\n    torch.cuda.synchronize()\n"


def scan_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    main(["scan", *arguments, "--format", "json"])
    return json.loads(capsys.readouterr().out)


def test_json_has_the_promised_fields_and_paths_relative_to_the_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "a.py").write_text(BAD)
    (finding,) = scan_json(capsys, str(tmp_path))
    assert {"path", "line", "end_line", "code", "verdict", "confidence", "message", "fix"} <= set(finding)
    assert (finding["path"], finding["line"], finding["code"], finding["verdict"]) == ("pkg/a.py", 3, "U021", "defect")


def test_defects_give_1_none_give_0_wrong_usage_gives_2(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    assert main(["scan", str(tmp_path)]) == 1
    assert main(["scan", str(tmp_path), "--code", "U001"]) == 0
    assert main(["scan", str(tmp_path), "--verdict", "review"]) == 0
    assert main(["scan", str(tmp_path), "--code", "U777"]) == 2
    assert main(["scan", str(tmp_path / "absent")]) == 2


def test_text_output_has_no_colour_when_it_is_not_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text(BAD)
    main(["scan", str(tmp_path)])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "U021 defect" in out
    assert "1 defects, 0 to review" in out


def test_scanning_torch_does_not_import_torch() -> None:
    code = (
        "import sys\nfrom uncuda.place import locate\nfrom uncuda.cli import make_parser\nmake_parser()\n"
        "root, base = locate('torch')\nassert (root / '__init__.py').is_file()\nassert 'torch' not in sys.modules\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("broken.py", b"def f(:  # cuda\n", "U901"),
        ("latin.py", b"# -*- coding: latin-1 -*-\nx = 'cuda \xe9'\n", "U902"),
        ("bytes.py", b"x = 'cuda \xff'\n", "U902"),
        (
            "newer.py",
            b"x = 'cuda'\ntype Wide[T] = list[T]\n" if sys.version_info < (3, 12) else b"x = 'cuda'\ny = t'{x}'\n",
            "U905",
        ),
        ("huge.py", b"#cuda\n" + b"\n" * MAX_BYTES, "U903"),
        ("null.py", b"x = 'cuda'\x00\n", "U901"),
    ],
)
def test_a_file_that_cannot_be_judged_is_one_finding_for_review(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, code: str
) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "sound.py").write_text(BAD)
    found = {(f["path"], f["code"], f["verdict"]) for f in scan_json(capsys, str(tmp_path))}
    assert found == {(name, code, "review"), ("sound.py", "U021", "defect")}


def test_a_loop_of_links_is_one_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "up").symlink_to(tmp_path)
    (tmp_path / "self.py").symlink_to(tmp_path / "self.py")
    found = {(f["path"], f["code"]) for f in scan_json(capsys, str(tmp_path))}
    assert found == {("inner/up", "U904"), ("self.py", "U904")}


def test_parallel_and_serial_scans_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from uncuda import scanner

    for number in range(6):
        (tmp_path / f"m{number}.py").write_text(BAD)
    serial = scanner.scan(tmp_path, jobs=1).findings
    monkeypatch.setattr(scanner, "_PARALLEL_FROM_BYTES", 0)
    assert scanner.scan(tmp_path, jobs=2).findings == serial
    assert len(serial) == 6


def test_explain_names_the_taxonomy_and_refuses_an_unknown_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "u001"]) == 0
    out = capsys.readouterr().out
    assert "taxonomy A1" in out
    assert "Why it matters" in out
    assert main(["explain", "U904"]) == 0
    assert main(["explain", "U777"]) == 2


def test_explain_without_a_code_lists_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [rule.code for rule in all_rules()]


def test_the_page_of_rules_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--all", "--format", "md"]) == 0
    page = Path(__file__).parents[2] / "docs" / "rules.md"
    assert page.read_text() == capsys.readouterr().out, "run: uncuda explain --all --format md > docs/rules.md"


def test_a_rule_without_examples_is_refused_when_its_class_is_made() -> None:
    with pytest.raises(RuleError, match="no `bad`"):
        type(
            "Empty",
            (Rule,),
            {
                "code": "U998",
                "taxonomy": ("A1",),
                "title": "t",
                "docs": Docs("a b c", "a b c", "a b c", "a b c"),
                "match": lambda self, context: iter(()),
                "judge": lambda self, context, match: None,
            },
        )


def test_a_rule_that_does_not_say_why_is_refused_when_its_class_is_made() -> None:
    body = {"code": "U998", "taxonomy": ("A1",), "title": "t", "bad": ("x",), "good": ("x",), "leave_alone": ("x",)}
    methods = {"match": lambda self, context: iter(()), "judge": lambda self, context, match: None}
    with pytest.raises(RuleError, match=r"docs\.why"):
        type("Mute", (Rule,), {**body, **methods, "docs": Docs("a b c", "", "a b c", "a b c")})


def test_no_rule_names_a_file_of_torch() -> None:
    import uncuda.rules

    for file in Path(uncuda.rules.__file__).parent.glob("u*.py"):
        for line in file.read_text().splitlines():
            assert not re.search(r"\w\.py\b", line), f"{file.name}: {line}"
