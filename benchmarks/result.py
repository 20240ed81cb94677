"""What a benchmark leaves behind: a JSON file, a plot, and a table on the terminal."""

import json
import os
import platform
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path

import jinja2
import rich
from alternating import Ratio
from rich.table import Table

_HERE = Path(__file__).parent
_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Limit:
    """What the median of a group should not exceed."""

    group: str
    ratio: float


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The result of one benchmark."""

    name: str
    title: str
    baseline: str
    measured: str
    ratios: tuple[Ratio, ...]
    limits: tuple[Limit, ...]
    environment: dict[str, str]

    def median(self, group: str) -> float:
        """Median of the ratios of a group."""
        return statistics.median(each.ratio for each in self.ratios if each.group == group)

    def exceeded(self) -> tuple[Limit, ...]:
        """The limits that the medians do not keep."""
        return tuple(limit for limit in self.limits if self.median(limit.group) > limit.ratio)


def machine() -> dict[str, str]:
    """What a reader needs to know to judge the figures. Names no host."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "processors": str(len(os.sched_getaffinity(0))),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def write(benchmark: Benchmark, folder: Path) -> tuple[Path, Path]:
    """Write ``<name>.json`` and ``<name>.svg`` into `folder`; return both."""
    folder.mkdir(parents=True, exist_ok=True)
    data, plot = folder / f"{benchmark.name}.json", folder / f"{benchmark.name}.svg"
    medians = {limit.group: benchmark.median(limit.group) for limit in benchmark.limits}
    data.write_text(json.dumps({"schema": _SCHEMA, "medians": medians, **asdict(benchmark)}, indent=2) + "\n")
    plot.write_text(draw(benchmark))
    return data, plot


def draw(benchmark: Benchmark) -> str:
    """The ratios as bars, with their middle halves, their controls and the limits, as SVG."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    largest = max([*(each.high for each in benchmark.ratios), *(limit.ratio for limit in benchmark.limits), 1.0])
    limits = {limit.group: limit.ratio for limit in benchmark.limits}
    return environment.get_template("ratios.svg.j2").render(benchmark=benchmark, largest=largest * 1.1, limits=limits)


def show(benchmark: Benchmark) -> None:
    """Print the figures as a table."""
    table = Table(title=benchmark.title)
    for column in ("what", benchmark.baseline, benchmark.measured, "ratio", "middle half", "control"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for each in benchmark.ratios:
        table.add_row(
            each.name,
            f"{each.baseline_us:.2f} us",
            f"{each.measured_us:.2f} us",
            f"{each.ratio:.2f}",
            f"{each.low:.2f} to {each.high:.2f}",
            f"{each.control:.2f}",
        )
    rich.print(table)
    for limit in benchmark.limits:
        kept = "within" if limit not in benchmark.exceeded() else "ABOVE"
        print(f"{limit.group}: median {benchmark.median(limit.group):.2f}, {kept} the limit of {limit.ratio:.2f}")
