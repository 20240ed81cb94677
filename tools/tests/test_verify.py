"""`uncuda verify` on the reference device: a cure is proven, a reverted hunk is not, failures have exit codes."""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from uncuda.commands import verify as command
from uncuda.evidence import Standing, standing
from uncuda.git_apply import git_apply
from uncuda.series import load_series
from uncuda.tree import installed_tree

PATCHES = Path(__file__).parents[2] / "patches"
SERIES = load_series(PATCHES)


def _verify(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([*arguments]))


def _copy(root: Path, *topics: str) -> Path:
    """A series of these topics alone, without their evidence."""
    for topic in topics:
        shutil.copytree(PATCHES / topic, root / topic, ignore=shutil.ignore_patterns("evidence.json"))
    (root / "order").write_text("".join(f"{topic}\n" for topic in topics))
    return root


def _hunks(patch: Path) -> list[tuple[str, str]]:
    """Every hunk of a patch file with the header of its file."""
    found = []
    for part in re.split(r"^(?=diff --git )", patch.read_text(), flags=re.MULTILINE)[1:]:
        header, *hunks = re.split(r"^(?=@@ )", part, flags=re.MULTILINE)
        found += [(header, hunk) for hunk in hunks]
    return found


def _write_without(patch: Path, left_out: int) -> None:
    """Write a patch file again, with one of its hunks left out."""
    text, last = "", ""
    for index, (header, hunk) in enumerate(_hunks(patch)):
        if index != left_out:
            text += hunk if header == last else header + hunk
            last = header
    patch.write_text(text)


def _dlpack_report(root: Path, overlays: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    status = _verify("--backend", "neuron_ref", "--json", "--patches", str(root), "--overlays", str(overlays), *more)
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (status, report["proven"]) == (0, True)
    [topic] = report["topics"]
    return topic


def test_a_cure_is_proven_by_its_cases_before_and_after(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = _copy(tmp_path / "patches", "dlpack-device-type")
    device, cpu = _dlpack_report(root, tmp_path / "overlays", capsys, "--quick")["devices"]
    assert {case["id"]: (case["before"], case["alone"], case["series"]) for case in device["cases"]} == {
        "interchange/dlpack/names-the-device/-/-": ("RAISED", "PASS", "PASS"),
        "interchange/dlpack/shares-memory/-/-": ("RAISED", "PASS", "PASS"),
    }
    assert (cpu["backend"], cpu["worse"]) == ("cpu", [])
    assert cpu["guarded"] > 0
    assert not (root / "dlpack-device-type" / "evidence.json").exists()


@pytest.mark.long
def test_a_full_verification_writes_evidence_that_is_current(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = _copy(tmp_path / "patches", "dlpack-device-type")
    topic = _dlpack_report(root, tmp_path / "overlays", capsys)
    assert topic["devices"][0]["guarded"] > 50
    series = load_series(root)
    assert standing(series.patches[0], series) == (Standing.CURRENT, "")


def test_a_reverted_hunk_is_not_proven_and_writes_no_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = _copy(tmp_path / "patches", "gradscaler-default-device")
    [patch] = load_series(root).patches
    hunks = _hunks(patch.files[0])
    [sharded] = [index for index, (header, _) in enumerate(hunks) if "sharded_grad_scaler" in header]
    _write_without(patch.files[0], sharded)
    status = _verify(
        "--backend", "neuron_ref", "--quick", "--patches", str(root), "--overlays", str(tmp_path / "overlays")
    )
    assert status == 1
    out = capsys.readouterr().out
    assert "NOT PROVEN" in out
    assert "alone: mixed_precision/sharded-grad-scaler/default-device/-/-: after the patch it is MISMATCH" in out
    assert "mixed_precision/grad-scaler/default-device/-/-: after" not in out
    assert not (patch.folder / "evidence.json").exists()


def test_a_patch_whose_case_passes_anyway_is_not_proven(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = _copy(tmp_path / "patches", "dlpack-device-type")
    topic = root / "dlpack-device-type" / "topic.toml"
    topic.write_text(
        topic.read_text().replace("interchange/dlpack/shares-memory", "registration/device/parses-its-name")
    )
    status = _verify(
        "--backend", "neuron_ref", "--quick", "--patches", str(root), "--overlays", str(tmp_path / "overlays")
    )
    assert status == 1
    assert "registration/device/parses-its-name/-/-: passes before the patch as well" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("topic", SERIES.topics)
def test_every_hunk_that_is_code_is_needed(topic: str, tmp_path: Path) -> None:
    [patch] = SERIES.select([topic]).patches
    hunks = _hunks(patch.files[0])
    for index in range(len(hunks)) if len(hunks) > 1 else ():
        root = _copy(tmp_path / str(index), topic)
        _write_without(root / topic / patch.files[0].name, index)
        if _code(root / topic / patch.files[0].name, patch.touched, tmp_path / f"{index}-reverted") == _code(
            patch.files[0], patch.touched, tmp_path / f"{index}-whole"
        ):
            continue  # Only words: nothing that a run could notice.
        status = _verify(
            "--backend", "neuron_ref", "--quick", "--patches", str(root), "--overlays", str(tmp_path / "overlays")
        )
        assert status == 1, f"{topic} is proven without its hunk {hunks[index][1]}"


def _code(patch: Path, names: tuple[str, ...], folder: Path) -> list[str]:
    """The patched files as syntax trees, without comments and docstrings."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(installed_tree().root / name, folder / name)
    assert git_apply(folder, patch).ok
    out = []
    for name in names:
        tree = ast.parse((folder / name).read_text())
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if (
                isinstance(body, list)
                and body
                and isinstance(body[0], ast.Expr)
                and ast.get_docstring(node, clean=False)
            ):
                body[0] = ast.Pass()
        out.append(ast.dump(tree))
    return out


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["no-such-topic", "--backend", "cpu"], 2, "got the topic 'no-such-topic', wanted one of"),
        (["--backend", "no_such_backend"], 2, "no_such_backend"),
        (["--backend", "cpu", "--patches", "/nonexistent"], 2, "wanted a folder with an 'order' file"),
    ],
)
def test_wrong_usage_exits_with_2(
    arguments: list[str], status: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _verify(*arguments, "--overlays", str(tmp_path / "overlays")) == status
    assert says in capsys.readouterr().err


def test_a_backend_that_does_not_start_exits_with_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "broken.toml"
    spec.write_text('schema = 1\nname = "broken"\nimport = "json"\nactivate = "json:no_such"\ndevice = "broken"\n')
    status = _verify("dlpack-device-type", "--backend", str(spec), "--quick", "--overlays", str(tmp_path / "overlays"))
    assert status == 3
    assert "no_such" in capsys.readouterr().err


def test_a_patch_that_does_not_apply_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = _copy(tmp_path / "patches", "dlpack-device-type")
    [patch] = load_series(root).patches
    patch.files[0].write_text(patch.files[0].read_text().replace("kDLExtDev", "kDLOther"))
    assert _verify("--backend", "cpu", "--patches", str(root), "--overlays", str(tmp_path / "overlays")) == 1
    assert "dlpack-device-type/0001-name-the-renamed-device.patch does not apply" in capsys.readouterr().err
