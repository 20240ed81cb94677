"""`git apply` on a plain folder, with nothing of the surrounding repository or of the user's settings in play."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_OFFSET = re.compile(r"succeeded at \d+ \(offset (-?\d+) lines?\)")


@dataclass(frozen=True, slots=True)
class Applied:
    """What git said of one patch.

    Attributes:
        ok: every hunk found its place.
        offset_lines: the largest distance of a hunk from the place that the patch names.
        message: git's own words when it did not apply, else empty.
    """

    ok: bool
    offset_lines: int = 0
    message: str = ""


def git_apply(folder: Path, patch: Path, *, reverse: bool = False, check: bool = False) -> Applied:
    """Apply ``patch`` to the files under ``folder``; all hunks or none.

    Args:
        reverse: take the patch out again.
        check: only say whether it would apply.
    """
    command = ["git", "apply", "--verbose", "--whitespace=nowarn"]
    command += ["--reverse"] if reverse else []
    command += ["--check"] if check else []
    done = subprocess.run(
        [*command, str(patch.resolve())], cwd=folder, env=_environment(folder), capture_output=True, text=True
    )
    offsets = [abs(int(offset)) for offset in _OFFSET.findall(done.stderr)]
    if done.returncode == 0:
        return Applied(ok=True, offset_lines=max(offsets, default=0))
    lines = (line for line in done.stderr.splitlines() if line.startswith(("error:", "fatal:")))
    errors = [line.partition(": ")[2] for line in lines if not line.endswith("while searching for:")]
    return Applied(ok=False, message="; ".join(errors) or done.stderr.strip())


def _environment(folder: Path) -> dict[str, str]:
    """Inside a repository git takes paths from its top and silently skips what lies outside the folder: hide it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_CEILING_DIRECTORIES": str(folder.resolve().parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C",
    }
