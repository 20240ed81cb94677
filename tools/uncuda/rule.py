"""What a rule is. One rule is one class in one file ``rules/u###_words.py``; adding a rule is adding a file."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import ClassVar

from .context import Context
from .finding import Finding, Location, Rewrite, Verdict


class RuleError(TypeError):
    """A rule class that lacks something; raised when the class is created."""


@dataclass(frozen=True, slots=True)
class Match:
    """A node that has the shape a rule looks for; nothing is said about right or wrong yet.

    Attributes:
        node: where the finding stands.
        about: what the message is about (a name, a list), for `judge` and `rewrite`.
        from_line: where the finding begins when that is above the node; 0 for the node's own first line.
    """

    node: ast.expr | ast.stmt | ast.arg
    about: str
    message: str
    from_line: int = 0


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the guards make of a match."""

    verdict: Verdict
    confidence: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fixed:
    """An example of a rewrite: source before, after, and whether `--unsafe` is needed."""

    before: str
    after: str
    unsafe: bool = True


@dataclass(frozen=True, slots=True)
class Docs:
    """The words of a rule under the headings that every rule has."""

    what: str
    why: str
    instead: str
    safety: str


class Rule(ABC):
    """Match, guards, reasons, words and examples of one kind of assumption.

    Class attributes that a rule must set (checked when the class is created):
        code: as the file name says it (``u001_...`` -> ``U001``).
        taxonomy: ids of the kinds it covers (``A1``).
        title: one line.
        docs: what, why, instead, safety.
        strongest: the strongest verdict that the rule gives.
        bad: sources in which the rule finds something with that verdict.
        good: sources in which it finds nothing: they are what to write instead.
        leave_alone: sources that look alike and are right; never a defect.
        fixed: rewrites, before and after; empty for a rule without a rewrite.
    """

    code: ClassVar[str]
    taxonomy: ClassVar[tuple[str, ...]]
    title: ClassVar[str]
    docs: ClassVar[Docs]
    strongest: ClassVar[Verdict] = Verdict.DEFECT
    bad: ClassVar[tuple[str, ...]]
    good: ClassVar[tuple[str, ...]]
    leave_alone: ClassVar[tuple[str, ...]]
    fixed: ClassVar[tuple[Fixed, ...]] = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if inspect.isabstract(cls):
            return
        for name in ("code", "taxonomy", "title", "docs", "bad", "good", "leave_alone"):
            if not getattr(cls, name, None):
                raise RuleError(
                    f"{cls.__module__}.{cls.__name__}: the rule has no `{name}`; set it (see uncuda/rule.py)"
                )
        for heading in ("what", "why", "instead", "safety"):
            if len(getattr(cls.docs, heading).split()) < 3:
                raise RuleError(f"{cls.__module__}.{cls.__name__}: docs.{heading} says nothing; write a sentence")
        if not re.fullmatch(r"U\d{3}", cls.code):
            raise RuleError(f"{cls.__module__}.{cls.__name__}: the code is {cls.code!r}, wanted U and three digits")
        file = PurePath(inspect.getfile(cls)).stem
        if cls.__module__.startswith(f"{__package__}.rules.") and not file.startswith(cls.code.lower() + "_"):
            raise RuleError(f"{cls.__module__}: the file must be named {cls.code.lower()}_words.py, is {file}.py")

    @abstractmethod
    def match(self, context: Context) -> Iterator[Match]:
        """Nodes of the shape that the rule looks for."""

    @abstractmethod
    def judge(self, context: Context, match: Match) -> Judgement | None:
        """What the context makes of a match; None when it is no finding at all."""

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        """The cure, when a rewrite is known."""
        return None

    def findings(self, context: Context) -> Iterator[Finding]:
        """Matches that the guards let through."""
        for match in self.match(context):
            judgement = self.judge(context, match)
            if judgement is None:
                continue
            node, source = match.node, context.source
            yield Finding(
                Location(source.path, match.from_line or node.lineno, node.end_lineno or node.lineno),
                self.code,
                judgement.verdict,
                judgement.confidence,
                judgement.reasons,
                match.message,
                " ".join(source.text(node).split())[:400],
                source.scope_name(node),
                self.rewrite(context, match),
            )


@cache
def all_rules() -> tuple[Rule, ...]:
    """One instance of every rule in the rules package, in order of code.

    Raises:
        RuleError: two files carry one code, or a file holds no rule.
    """
    from . import rules

    found: dict[str, Rule] = {}
    for info in pkgutil.iter_modules(rules.__path__):
        module = importlib.import_module(f"{rules.__name__}.{info.name}")
        classes = [
            item
            for item in vars(module).values()
            if isinstance(item, type) and issubclass(item, Rule) and item.__module__ == module.__name__
        ]
        if len(classes) != 1:
            raise RuleError(f"{module.__name__}: holds {len(classes)} rules, wanted one")
        rule = classes[0]()
        if rule.code in found:
            raise RuleError(f"{module.__name__}: the code {rule.code} is taken by {type(found[rule.code]).__module__}")
        found[rule.code] = rule
    return tuple(found[code] for code in sorted(found))
