"""``report``: a run as one self-contained HTML page, as Markdown, or as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass

from .. import codec
from ..outcome import Kind
from ..run_record import Results
from .terminal import group_by_cause

CAUSES_IN_MARKDOWN = 30


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a family's bar: how many cases have a kind, and their share in percent."""

    kind: str
    count: int
    percent: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One family: its cases, its samples, the share of samples that passed in percent, and its bar."""

    family: str
    cases: int
    samples: int
    passed: float
    segments: tuple[Segment, ...]


def as_json(results: Results) -> str:
    """The record of the run with the outcome and the verdict of every planned case."""
    run = results.run
    outcomes = [
        {**codec.to_json(outcome), "verdict": run.verdict(name).value} for name, outcome in results.outcomes.items()
    ]
    return json.dumps({"run": codec.to_json(run), "outcomes": outcomes}, ensure_ascii=False, indent=1) + "\n"


def as_markdown(results: Results) -> str:
    """A summary for an issue or a job page: counts by family, then what is not as expected, by cause."""
    run = results.run
    kinds = [kind.value for kind in Kind if kind.value in run.counts.cases]
    lines = [f"# {run.spec.name}, {run.profile}: {verdict_text(results)}", ""]
    lines += [f"- {name}: {value}" for name, value in environment_of(results) if value]
    lines += [
        "",
        f"| family | cases | {' | '.join(kinds)} | samples passed |",
        "|---|---:|" + "---:|" * (len(kinds) + 1),
    ]
    for bar in bars(results):
        counts = {segment.kind: segment.count for segment in bar.segments}
        cells = " | ".join(str(counts.get(kind, "")) for kind in kinds)
        lines.append(f"| {bar.family} | {bar.cases} | {cells} | {bar.passed:.2f} % of {bar.samples:,} |")
    groups = group_by_cause(results.outcomes[name] for name in run.bad)
    if groups:
        lines += ["", "## Not as expected", ""]
    for group in groups[:CAUSES_IN_MARKDOWN]:
        lines.append(
            f"- **{group.kind.value}** {len(group.outcomes)}x `{_code(group.cause)}`, such as `{group.outcomes[0].id}`"
        )
    if len(groups) > CAUSES_IN_MARKDOWN:
        lines.append(f"- and {len(groups) - CAUSES_IN_MARKDOWN} more causes")
    lines += [f"- expectation `{item.entry}` (line {item.line}) {item.text}" for item in run.problems]
    return "\n".join(lines) + "\n"


def as_html(results: Results) -> str:
    """One page that needs nothing else: bars by family and a table that can be filtered."""
    import jinja2

    loader = jinja2.PackageLoader("torch_conformance.report", ".")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    run = results.run
    rows = [
        {
            "id": name,
            "family": name.partition("/")[0],
            "kind": outcome.kind.value,
            "verdict": run.verdict(name).value,
            "bad": name in bad,
            "message": outcome.message,
            "detail": "\n".join(filter(None, (outcome.traceback, outcome.observation.stack))),
            "samples": f"{len(outcome.samples.failed)} of {outcome.samples.planned}" if outcome.samples.failed else "",
            "reason": run.deviations[name].reason if name in run.deviations else "",
        }
        for bad in [set(run.bad)]
        for name, outcome in results.outcomes.items()
        if outcome.kind is not Kind.PASS or name in bad
    ]
    rows.sort(key=lambda row: not row["bad"])
    return environment.get_template("page.html.j2").render(
        run=run,
        verdict=verdict_text(results),
        environment=environment_of(results),
        bars=bars(results),
        kinds=[kind.value for kind in Kind if kind.value in run.counts.cases],
        groups=group_by_cause(results.outcomes[name] for name in run.bad),
        rows=rows,
    )


def bars(results: Results) -> list[Bar]:
    """One bar a family, in plan order."""
    out = []
    for family, counts in results.run.families.items():
        cases, samples = sum(counts.cases.values()), sum(counts.samples.values())
        out.append(
            Bar(
                family=family,
                cases=cases,
                samples=samples,
                # Rounded down: 100 % is said only of all.
                passed=int(counts.samples.get(Kind.PASS.value, 0) / samples * 10000) / 100 if samples else 0.0,
                segments=tuple(Segment(kind, count, count / cases * 100) for kind, count in counts.cases.items()),
            )
        )
    return out


def verdict_text(results: Results) -> str:
    """As expected, or how many cases are not."""
    run = results.run
    if run.exit_code == 0:
        return "as expected"
    return f"{len(run.bad)} of {run.planned} cases not as expected"


def environment_of(results: Results) -> list[tuple[str, str]]:
    """What a reader must know to judge the run."""
    run, backend = results.run, results.run.backend
    out = [("run", run.run_id), ("began", run.began), ("seconds", f"{run.seconds:.1f}")]
    if backend is not None:
        device = f"{backend.spec.device} x {backend.count}"
        out += [
            ("device", f"{device} ({backend.device_name})" if backend.device_name else device),
            ("build", backend.build),
            ("torch", f"{backend.torch} (git {backend.torch_git[:12]})" if backend.torch_git else backend.torch),
            ("python", backend.python),
        ]
        out += [(name, version) for name, version in backend.packages.items()]
    out += [("platform", run.platform), ("seed", str(run.seed)), ("faults", ", ".join(run.faults))]
    out += [(f"{name} digest", value) for name, value in run.digests.items()]
    return [*out, ("command", " ".join(run.command))]


def _code(text: str) -> str:
    return " ".join(text.split()).replace("`", "'").replace("|", "\\|")[:300]
