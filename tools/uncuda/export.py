"""The series as files that a person can send: plain patches, or a mailbox for `git am`."""

from __future__ import annotations

import re
from pathlib import Path

from .series import Series

_AUTHOR = re.compile(r"[^<>\n]+ <[^<>\s]+@[^<>\s]+>")
_FILES_DATE = "Mon Sep 17 00:00:00 2001"
"""The fixed date by which git recognises a message of `git format-patch`."""
DISCLOSURE = "This change was prepared with AI assistance; see the cover of the topic."


class ExportError(Exception):
    """An export that cannot be made as asked."""


def export_patches(series: Series, out: Path) -> list[Path]:
    """Write every patch file, numbered in the order in which they apply.

    Raises:
        ExportError: when ``out`` holds patches already.
    """
    _prepare(out)
    written: list[Path] = []
    for patch in series.patches:
        for file in patch.files:
            target = out / f"{len(written) + 1:04}-{patch.topic}-{file.name.partition('-')[2]}"
            target.write_bytes(file.read_bytes())
            written.append(target)
    return written


def export_mailbox(series: Series, out: Path, author: str) -> list[Path]:
    """Write one mailbox, one message a patch file, for `git am`.

    Args:
        author: ``NAME <MAIL>`` of the person who has reviewed the patches and answers for them.

    Raises:
        ExportError: when the author has not that form, or ``out`` holds patches already.
    """
    if not _AUTHOR.fullmatch(author):
        raise ExportError(
            f"got the author {author!r}, wanted 'NAME <MAIL>' of the person who has reviewed the patches: PyTorch "
            "takes no contribution that no person answers for"
        )
    _prepare(out)
    messages: list[str] = []
    total = sum(len(patch.files) for patch in series.patches)
    for patch in series.patches:
        for file in patch.files:
            subject = f"[PATCH {len(messages) + 1}/{total}] {patch.title}"
            body = f"CUDA: {patch.cuda}\nOther devices: {patch.others}\n\n{DISCLOSURE}"
            diff = file.read_text(encoding="utf-8")
            messages.append(
                f"From {'0' * 40} {_FILES_DATE}\nFrom: {author}\nSubject: {subject}\n"
                f"Content-Type: text/plain; charset=UTF-8\n\n{body}\n---\n\n{diff}--\nuncuda\n\n"
            )
    target = out / "series.mbox"
    target.write_text("".join(messages), encoding="utf-8")
    return [target]


def _prepare(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    if any(out.glob("*.patch")) or any(out.glob("*.mbox")):
        raise ExportError(f"{out} holds patches already; name a new folder")
