"""Random state of torch.cuda in general code."""

from __future__ import annotations

from collections.abc import Iterator

from ..context import Context
from ..finding import Level, Rewrite
from ..judging import judge_use
from ..names import RNG, cuda_member
from ..rule import Docs, Judgement, Match, Rule


class CudaRandomState(Rule):
    code = "U022"
    taxonomy = ("C3",)
    title = "only CUDA's random state is seeded, saved or restored"
    docs = Docs(
        what="Finds torch.cuda's seeding and random-state functions called in general code, also behind "
        "torch.cuda.is_available().",
        why="On another accelerator the device's generator is neither seeded nor restored: runs differ, and "
        "nothing says so.",
        instead="Ask `torch.get_device_module(torch.accelerator.current_accelerator())` for the same function, "
        "behind hasattr.",
        safety="Display only: saving and restoring have to change together, through the same module and in the "
        "same modes.",
    )
    bad = (
        "import torch\ndef keep(fn):\n    if torch.cuda.is_available():\n"
        "        saved = torch.cuda.get_rng_state()\n    fn()\n"
        "    if torch.cuda.is_available():\n        torch.cuda.set_rng_state(saved)\n",
        "import torch\ndef seed(n):\n    torch.cuda.manual_seed_all(n)\n",
    )
    good = ("import torch\ndef seed(n):\n    torch.manual_seed(n)\n",)
    leave_alone = (
        "import torch\ndef seed(device, n):\n    if device.type == 'cuda':\n        torch.cuda.manual_seed(n)\n",
        "import torch\nSETTERS = [torch.cuda.set_rng_state, torch.cuda.manual_seed]\n",
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node, dotted in context.source.calls:
            member = cuda_member(dotted)
            if member in RNG:
                yield Match(
                    node, str(member), f"torch.cuda.{member}() leaves out the generator of any other accelerator"
                )

    def judge(self, context: Context, match: Match) -> Judgement | None:
        return judge_use(context, match.node)

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        return Rewrite(
            Level.DISPLAY,
            f"torch.get_device_module(accelerator).{match.about}(...), behind hasattr",
            "saving and restoring have to change together",
        )
