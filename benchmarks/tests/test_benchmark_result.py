"""What a benchmark writes and says."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from alternating import Ratio
from result import Benchmark, Limit, draw, show, write


def _ratio(name: str, group: str, ratio: float) -> Ratio:
    return Ratio(name, group, ratio, ratio - 0.1, ratio + 0.1, 1.01, 1.0, ratio, turns=3, repeats=10)


@pytest.fixture
def benchmark() -> Benchmark:
    ratios = (_ratio("add", "tiny", 1.2), _ratio("mul <8>", "tiny", 1.6), _ratio("mm", "large", 1.3))
    limits = (Limit("tiny", 1.7), Limit("large", 1.05))
    return Benchmark("overhead", "Overhead", "cpu", "device", ratios, limits, {"torch": "2.13.0"})


def test_only_a_group_above_its_limit_is_exceeded(benchmark: Benchmark) -> None:
    assert [limit.group for limit in benchmark.exceeded()] == ["large"]


def test_the_json_file_holds_every_ratio_and_the_medians(benchmark: Benchmark, tmp_path: Path) -> None:
    data, _ = write(benchmark, tmp_path / "new")
    read = json.loads(data.read_text())
    assert read["schema"] == 1
    assert [each["ratio"] for each in read["ratios"]] == [1.2, 1.6, 1.3]
    assert read["medians"] == {"tiny": pytest.approx(1.4), "large": 1.3}


def test_the_plot_is_xml_with_a_bar_and_a_control_for_each_ratio(benchmark: Benchmark) -> None:
    root = ElementTree.fromstring(draw(benchmark))
    space = "{http://www.w3.org/2000/svg}"
    bars = [each for each in root.iter(f"{space}rect") if each.get("fill") == "#6c93c7"]
    widths = [float(each.get("width", "0")) for each in bars]
    assert widths[1] / widths[0] == pytest.approx(1.6 / 1.2, rel=0.01)
    assert len(list(root.iter(f"{space}circle"))) == 3
    assert "mul <8>" in [each.text for each in root.iter(f"{space}text")]


def test_the_terminal_says_which_limit_is_not_kept(benchmark: Benchmark, capsys: pytest.CaptureFixture[str]) -> None:
    show(benchmark)
    said = capsys.readouterr().out
    assert "tiny: median 1.40, within the limit of 1.70" in said
    assert "large: median 1.30, ABOVE the limit of 1.05" in said
