"""Findings as JSON; the only place that knows the field names of that format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .finding import Finding, Rewrite


def to_json(findings: Iterable[Finding]) -> str:
    """A JSON list, one object a finding."""
    return json.dumps([_finding(finding) for finding in findings], indent=2)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "path": finding.location.path,
        "line": finding.location.line,
        "end_line": finding.location.end_line,
        "code": finding.code,
        "verdict": finding.verdict.value,
        "confidence": round(finding.confidence, 2),
        "message": finding.message,
        "reasons": list(finding.reasons),
        "scope": finding.scope,
        "fingerprint": finding.fingerprint,
        "fix": None if finding.rewrite is None else _rewrite(finding.rewrite),
    }


def _rewrite(rewrite: Rewrite) -> dict[str, Any]:
    return {
        "level": rewrite.level.value,
        "summary": rewrite.summary,
        "note": rewrite.note,
        "imports": list(rewrite.imports),
        "edits": [{"start": edit.start, "end": edit.end, "text": edit.text} for edit in rewrite.edits],
    }
