"""Loops in AMD's instructions: how much of a loop's work is multiply-adds, and how much it reads for each."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Multiply-adds of one invocation, by mnemonic. A matrix instruction of 16 x 16 x 16 by 32 invocations makes 128 for each.
_MULTIPLY_ADDS = (
    (re.compile(r"v_(fma|fmac|mad|mac)\w*_(f32|f64)|v_(fma|mad)_mix\w*|v_(fma|mad|fmac)\w*_f16"), 1),
    (re.compile(r"v_pk_fma_f(16|32)|v_dot2\w*"), 2),
    (re.compile(r"v_dot4\w*"), 4),
    (re.compile(r"v_dot8\w*"), 8),
    (re.compile(r"v_wmma_\w*16x16x16\w*"), 128),
)
# ds_read_b128, ds_read2st64_b64; on RDNA 3 ds_load_b128, ds_load_2addr_stride64_b64
_LOCAL_READ = re.compile(r"ds_(?:load|read)_?(?P<two>2?)[a-z]*(?:64)?_(?:addr_)?[a-z]*(?P<bits>8|16|32|64|96|128)(?:_|$)")
_GLOBAL_READ = re.compile(
    r"(?:buffer|global)_load_"
    r"(?:dword(?:x(?P<words>\d))?|[a-z0-9_]*?(?P<bits>8|16|32|64|96|128)(?:_|$)|[us]byte|[us]short)"
)
_BRANCH = re.compile(r"s_c?branch\w*\s+(BB\d+)")
_LABEL = re.compile(r"(BB\d+):")


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A loop of a kernel. Counts are those of one invocation in one iteration, as if every branch were taken.

    Attributes:
        label: the listing's name of its first block.
        multiply_adds: multiply-adds of float32 or float16 numbers, and products of packed integers.
        slots: vector instructions that the loop issues; two in one (`v_dual_...`) take one slot.
        local_bytes, global_bytes: bytes read from workgroup memory and from buffers.
        barriers: barriers of the workgroup.
        instructions: how often each instruction occurs.
    """

    label: str
    multiply_adds: int
    slots: int
    local_bytes: int
    global_bytes: int
    barriers: int
    instructions: Counter[str] = field(repr=False, compare=False)

    @property
    def share(self) -> float:
        """Multiply-adds per issue slot."""
        return self.multiply_adds / self.slots if self.slots else 0.0

    @property
    def local_bytes_each(self) -> float:
        """Bytes of workgroup memory read for each multiply-add."""
        return self.local_bytes / self.multiply_adds if self.multiply_adds else 0.0

    @property
    def global_bytes_each(self) -> float:
        """Bytes of buffers read for each multiply-add."""
        return self.global_bytes / self.multiply_adds if self.multiply_adds else 0.0

    @property
    def rate(self) -> float:
        """The share of a GPU's peak that the loop can reach: by its issue slots, and by one byte of workgroup memory each."""
        return min(self.share, 1 / self.local_bytes_each) if self.local_bytes else self.share


@dataclass(frozen=True)
class LoopTree:
    """A loop with the loops in it. The counts of an outer loop include one iteration of each inner one."""

    loop: Loop
    inner: tuple[LoopTree, ...]


def loop_trees(text: str) -> list[LoopTree]:
    """Return the outermost loops of a kernel, in the order of its text.

    Args:
        text: what RADV prints of a pipeline. A loop is a run of blocks that ends with a branch to its first.
    """
    blocks = _blocks(assembly(text))
    number = {name: i for i, (name, _) in enumerate(blocks)}
    last: dict[int, int] = {}
    for i, (_, lines) in enumerate(blocks):
        for line in lines:
            branch = _BRANCH.match(line)
            if branch and number.get(branch[1], i + 1) <= i:
                last[number[branch[1]]] = i

    def trees(spans: list[tuple[int, int]]) -> list[LoopTree]:
        outer = [s for s in spans if not any(o != s and o[0] <= s[0] and s[1] <= o[1] for o in spans)]
        return [
            LoopTree(
                _count(blocks[first][0], [line for _, lines in blocks[first : end + 1] for line in lines]),
                tuple(trees([s for s in spans if s != (first, end) and first <= s[0] and s[1] <= end])),
            )
            for first, end in outer
        ]

    return trees(sorted(last.items()))


def loops(text: str) -> list[Loop]:
    """Return the innermost loops of a kernel, in the order of its text."""

    def innermost(trees: Iterable[LoopTree]) -> Iterator[Loop]:
        for tree in trees:
            yield from innermost(tree.inner) if tree.inner else [tree.loop]

    return list(innermost(loop_trees(text)))


def assembly(text: str) -> str:
    """Return the instructions of a pipeline, the last part of what RADV prints."""
    return text[text.rfind("==== Assembly") :]


def hot_loop(text: str) -> Loop | None:
    """Return the innermost loop with the most multiply-adds; None where no loop has any."""
    found = max(loops(text), key=lambda loop: loop.multiply_adds, default=None)
    return found if found and found.multiply_adds else None


def _blocks(text: str) -> list[tuple[str, list[str]]]:
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label:
            blocks.append((label[1], []))
        elif blocks and line.strip() and not line.startswith("="):
            blocks[-1][1].append(line.split(";")[0].strip())
    return blocks


def _count(label: str, lines: list[str]) -> Loop:
    slots = multiply_adds = local = read = barriers = 0
    instructions: Counter[str] = Counter()
    for line in lines:
        # Two instructions in one slot are printed in one line: v_dual_fmac_f32 ... :: v_dual_mul_f32 ...
        names = [part.split()[0].replace("v_dual_", "v_") for part in line.split("::") if part.strip()]
        slots += any(name.startswith("v_") for name in names)
        for name in names:
            instructions[re.sub(r"_e(32|64)$", "", name)] += 1
            multiply_adds += next((n for pattern, n in _MULTIPLY_ADDS if pattern.match(name)), 0)
            local += _local_bytes(name)
            read += _global_bytes(name)
            barriers += name.startswith("s_barrier")
    return Loop(
        label=label,
        multiply_adds=multiply_adds,
        slots=slots,
        local_bytes=local,
        global_bytes=read,
        barriers=barriers,
        instructions=instructions,
    )


def _local_bytes(name: str) -> int:
    found = _LOCAL_READ.match(name)
    return int(found["bits"]) // 8 * (2 if found["two"] else 1) if found else 0


def _global_bytes(name: str) -> int:
    found = _GLOBAL_READ.match(name)
    if not found:
        return 0
    if "dword" in name:
        return 4 * int(found["words"] or 1)
    return int(found["bits"] or (8 if "byte" in name else 16)) // 8
