"""Draw docs/images/summary.svg: what `make conformance` prints, as a picture.

Usage: .venv/bin/torch-conformance run ... | .venv/bin/python docs/images/summary.py
"""

import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

console = Console(record=True, width=100, file=sys.stderr)
lines = [line for line in sys.stdin.read().splitlines() if " cases, " not in line or "regressions, " not in line]
console.print(Text.from_ansi("\n".join(lines)))
target = Path(__file__).with_suffix(".svg")
target.write_text(console.export_svg(title="torch-conformance run --backend neuron_ref --profile smoke"))
print(f"wrote {target.name}")
