"""``junit.xml``: one test case for each planned case, in the form that CI systems read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from ..case import Case
from ..judge import Verdict
from ..outcome import Kind, Outcome
from ..run_record import Run

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(run: Run, cases: Sequence[Case], outcomes: Mapping[str, Outcome]) -> str:
    """The document.

    A regression or an unexpected pass is a failure (an error when the process went away or the suite broke); what did
    not run or was blocked or refused is skipped; a deviation that an entry allows passes, with its kind as a property.
    """
    suites = ElementTree.Element("testsuites", name="torch-conformance", time=f"{run.seconds:.3f}")
    totals = [0, 0, 0, 0]
    families = dict.fromkeys(case.id.family for case in cases)
    for family in families:
        suite = ElementTree.SubElement(suites, "testsuite", name=family)
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in (("run_id", run.run_id), ("backend", run.spec.name), ("profile", run.profile)):
            ElementTree.SubElement(properties, "property", name=name, value=value)
        counts = [0, 0, 0, 0]
        seconds = 0.0
        for case in cases:
            if case.id.family == family:
                outcome = outcomes[str(case.id)]
                seconds += outcome.seconds
                _add(suite, run, case, outcome, counts)
        _state(suite, counts, seconds)
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
    _state(suites, totals, run.seconds)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _add(suite: ElementTree.Element, run: Run, case: Case, outcome: Outcome, counts: list[int]) -> None:
    identifier = case.id
    name = "/".join((identifier.subject, identifier.behaviour, identifier.dtype, identifier.variant))
    element = ElementTree.SubElement(
        suite, "testcase", classname=identifier.family, name=name, time=f"{outcome.seconds:.4f}"
    )
    properties = ElementTree.SubElement(element, "properties")
    verdict = run.verdict(outcome.id)
    for key, value in (("id", outcome.id), ("kind", outcome.kind.value), ("verdict", verdict.value)):
        ElementTree.SubElement(properties, "property", name=key, value=value)
    counts[0] += 1
    message = _clean(outcome.message)
    body = _clean("\n".join(filter(None, (outcome.message, outcome.traceback, outcome.observation.stack))))
    if outcome.kind in (Kind.NOT_RUN, Kind.BLOCKED, Kind.REFUSED):
        counts[3] += 1
        ElementTree.SubElement(element, "skipped", type=outcome.kind.value, message=message)
    elif verdict is Verdict.UNEXPECTED_PASS:
        counts[1] += 1
        entry = run.deviations[outcome.id].entry
        text = f"passes, although the entry {entry!r} expects otherwise; remove the entry"
        ElementTree.SubElement(element, "failure", type=verdict.value, message=_clean(text)).text = _clean(text)
    elif verdict is Verdict.REGRESSION:
        broken = outcome.kind in (Kind.CRASHED, Kind.TIMED_OUT, Kind.ORACLE_BROKEN)
        counts[2 if broken else 1] += 1
        failure = ElementTree.SubElement(
            element, "error" if broken else "failure", type=outcome.kind.value, message=message
        )
        failure.text = body
    if outcome.observation.output_tail:
        ElementTree.SubElement(element, "system-out").text = _clean(outcome.observation.output_tail)


def _state(element: ElementTree.Element, counts: Sequence[int], seconds: float) -> None:
    for name, value in zip(("tests", "failures", "errors", "skipped"), counts, strict=True):
        element.set(name, str(value))
    element.set("time", f"{seconds:.3f}")


def _clean(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
