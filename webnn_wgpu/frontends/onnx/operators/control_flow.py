"""If, Loop and Scan: branches are taken, and loops unrolled, where what decides them is known; the host runs the others."""

from __future__ import annotations

from ..call import Call
from ._registry import Inline, Result, lowers


@lowers("If", empty=True)
def if_(call: Call) -> Result:
    """The nodes of one branch."""
    branch = call.attribute("then_branch" if call.number(0) else "else_branch")
    return Inline(list(branch), branch.outputs)
