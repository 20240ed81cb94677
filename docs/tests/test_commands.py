"""The commands quoted in README.md and docs/ run; a block after `<!-- not run: why -->` is left out."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Not docs/rules.md: its examples are code to be found and are tested with their rules.
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "concepts").glob("*.md"))]
BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n)?```console\n(.*?)```", re.DOTALL)

# What these exit with when all is well; finding something is what `scan` is for.
FINDINGS = ("uncuda scan",)


def quoted_commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for excluded, block in BLOCK.findall(page.read_text()):
            lines = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
            # The make targets are CI itself: running them from a test would start CI in CI.
            found += [(page.name, line) for line in lines if not excluded and not line.startswith("make ")]
    return found


def test_the_readme_quotes_the_two_set_up_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert "$ make conformance" in text
    assert "$ make test" in text


@pytest.mark.parametrize(("page", "command"), quoted_commands(), ids=lambda value: value)
def test_a_quoted_command_runs(page: str, command: str, tmp_path: Path) -> None:
    program, *arguments = shlex.split(command)
    assert program.startswith(".venv/bin/"), f"{page}: quote the commands as they are after `make`: {command}"
    program = str(Path(sys.executable).parent / Path(program).name)
    if "run" in arguments[:1]:
        arguments += ["--out", str(tmp_path / "run")]
    done = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300)
    if arguments == ["show"]:
        # Without a run of its own, `show` takes the newest below runs/, which a fresh clone does not have.
        arguments.append(str(tmp_path / "run"))
        small = [program, "run", "--backend", "cpu", "--case", "factory/**", "--out", arguments[-1]]
        subprocess.run(small, cwd=ROOT, capture_output=True, check=True, timeout=300)
    wanted = 1 if any(text in command for text in FINDINGS) else 0
    assert done.returncode == wanted, f"{page}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def python_blocks() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        found += [(page.name, block) for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)]
    return found


@pytest.mark.parametrize(("page", "block"), python_blocks(), ids=lambda value: value.splitlines()[0])
def test_a_quoted_script_runs(page: str, block: str) -> None:
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{page}:\n{block}\n{done.stderr[-2000:]}"
