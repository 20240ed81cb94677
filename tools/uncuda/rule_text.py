"""A rule's words as text for the terminal and as Markdown for docs/rules.md."""

from __future__ import annotations

from collections.abc import Sequence

from .reading import Trouble
from .rule import Rule

_HEADINGS = (
    ("What it finds", "what"),
    ("Why it matters", "why"),
    ("Write instead", "instead"),
    ("Rewrite and its safety", "safety"),
)
_TROUBLE = {
    Trouble.SYNTAX: "The file does not parse.",
    Trouble.ENCODING: "The file is not UTF-8, or declares another encoding.",
    Trouble.HUGE: "The file is larger than 8 MiB.",
    Trouble.LOOP: "A symbolic link leads back to itself or to a folder above it.",
    Trouble.GRAMMAR: "The file uses a grammar that is newer than the Python that runs uncuda.",
    Trouble.UNREADABLE: "The file cannot be opened.",
}


def as_text(rule: Rule) -> str:
    """One rule for the terminal."""
    kinds = ", ".join(rule.taxonomy)
    parts = [f"{rule.code}  {rule.title}", f"taxonomy {kinds}; strongest verdict: {rule.strongest.value}", ""]
    for heading, name in _HEADINGS:
        parts += [heading, *(f"    {line}" for line in _wrap(getattr(rule.docs, name))), ""]
    for heading, examples in (("Found", rule.bad), ("Not found", rule.good), ("Left alone", rule.leave_alone)):
        parts += [heading, *(f"    {line}" for line in examples[0].rstrip().split("\n")), ""]
    return "\n".join(parts)


def as_line(rule: Rule) -> str:
    """One rule in a list."""
    return f"{rule.code}  {','.join(rule.taxonomy):9}  {rule.title}"


def as_markdown(rules: Sequence[Rule]) -> str:
    """The page docs/rules.md."""
    parts = [
        "# Rules of uncuda",
        "",
        "Made by `uncuda explain --all --format md` from the rule files; their examples are also their tests.",
        "",
        "| code | kind | rule | rewrite |",
        "|---|---|---|---|",
        *(f"| [{r.code}](#{r.code.lower()}) | {', '.join(r.taxonomy)} | {r.title} | {_levels(r)} |" for r in rules),
        *(f"| {trouble.value} | - | {text} | none |" for trouble, text in _TROUBLE.items()),
        "",
        "Kinds are those of the taxonomy: A defaults and literals, B device-type gates, C torch.cuda, D "
        "dispatch keys, E public names, "
        "F what spelling does not show, G tests, H words.",
    ]
    for rule in rules:
        parts += [
            "",
            f"## {rule.code}",
            "",
            f"{rule.title[0].upper()}{rule.title[1:]} (kind {', '.join(rule.taxonomy)}).",
        ]
        for heading, name in _HEADINGS:
            parts += ["", f"**{heading}.** {getattr(rule.docs, name)}"]
        for heading, examples in (("Found", rule.bad), ("Not found", rule.good), ("Left alone", rule.leave_alone)):
            parts += ["", f"{heading}:"]
            for example in examples:
                parts += ["", "```python", example.rstrip(), "```"]
        for fixed in rule.fixed:
            parts += [
                "",
                f"Rewritten ({'unsafe' if fixed.unsafe else 'safe'}):",
                "",
                "```python",
                fixed.before.rstrip(),
                "```",
            ]
            parts += ["", "```python", fixed.after.rstrip(), "```"]
    return "\n".join(parts) + "\n"


def trouble_text(code: str) -> str | None:
    """The words for a code that says why a file was not judged; None for another code."""
    return next(
        (
            f"{code}  {text} It is not judged; nothing else stops."
            for item, text in _TROUBLE.items()
            if item.value == code
        ),
        None,
    )


def _levels(rule: Rule) -> str:
    return " and ".join(sorted({"unsafe" if fixed.unsafe else "safe" for fixed in rule.fixed})) or "shown only"


def _wrap(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 100)
