"""Einstein's summation: repeated letters select diagonals, and letters absent from the result are summed over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ._registry import Result, lowers
from .linear import product


@dataclass(frozen=True)
class EinsumTerm:
    """An operand and the letters of its dimensions. The dimensions of an ellipsis are numbers, counted from the last."""

    operand: MLOperand
    letters: tuple[str, ...]

    def size(self, letter: str) -> int:
        """Return the size of a letter's dimension."""
        return int(self.operand.shape[self.letters.index(letter)])


def letters_of(call: NodeCall, text: str, rank: int | None, ellipsis: int = 0) -> tuple[str, ...]:
    """Return the letters of a term.

    Args:
        call: the node.
        text: the term.
        rank: the rank of its operand, None for the result.
        ellipsis: the number of dimensions of an ellipsis in the result.
    """
    before, dots, behind = text.partition("...")
    if dots:
        ellipsis = ellipsis if rank is None else rank - len(before) - len(behind)
    elif rank is not None and len(before) != rank:
        call.fail(f"term '{text}' does not fit an operand of rank {rank}")
    letters = (*before, *(str(i) for i in reversed(range(ellipsis if dots else 0))), *behind)
    if ellipsis < 0 or any(not (c.isalpha() or c.isdigit()) for c in (*before, *behind)):
        call.fail(f"term '{text}' does not fit its operand, or holds other characters than letters")
    return letters


def diagonal(call: NodeCall, term: EinsumTerm) -> EinsumTerm:
    """Return a term without repeated letters."""
    operand, letters = term.operand, list(term.letters)
    for letter in dict.fromkeys(term.letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            order = [i for i in range(len(letters)) if i not in (first, second)]
            size = int(operand.shape[first])
            if operand.shape[second] != size:
                call.fail(f"letter '{letter}' stands for sizes {size} and {operand.shape[second]}")
            heads = [int(operand.shape[i]) for i in order]
            operand = call.reshape(call.transpose(operand, [*order, first, second]), [*heads, size * size])
            if size > 1:
                strides = [*[1] * len(heads), size + 1]
                operand = call.build.slice(operand, [0] * len(strides), list(operand.shape), strides=strides)
            letters = [*(letters[i] for i in order), letter]
    return EinsumTerm(operand, tuple(letters))


def summed(call: NodeCall, term: EinsumTerm, kept: set[str]) -> EinsumTerm:
    """Return a term without the letters that are not kept."""
    axes = [i for i, letter in enumerate(term.letters) if letter not in kept]
    if not axes:
        return term
    return EinsumTerm(call.build.reduce_sum(term.operand, axes=axes), tuple(c for c in term.letters if c in kept))


def arranged(call: NodeCall, term: EinsumTerm, groups: Sequence[Sequence[str]], sizes: Sequence[int]) -> MLOperand:
    """Return a term's operand with its letters in the order of groups.

    Each group is one dimension, and `sizes` leads the shape.
    """
    order = [term.letters.index(letter) for group in groups for letter in group]
    moved = call.transpose(term.operand, order)
    return call.reshape(moved, [*sizes, *(math.prod(term.size(c) for c in group) for group in groups[1:])])


def contracted(call: NodeCall, a: EinsumTerm, b: EinsumTerm, kept: set[str]) -> EinsumTerm:
    """Return the product of two terms, summed over the letters that are not kept."""
    # A dimension of size 1 that is paired with a longer one is broadcast, so it can be removed.
    both = [c for c in a.letters if c in b.letters]
    for x, y in ((a, b), (b, a)):
        lone = [c for c in both if x.size(c) == 1 and y.size(c) != 1]
        if lone:
            shape = [d for c, d in zip(x.letters, x.operand.shape, strict=True) if c not in lone]
            less = EinsumTerm(call.reshape(x.operand, shape), tuple(c for c in x.letters if c not in lone))
            return contracted(call, less, b, kept) if x is a else contracted(call, a, less, kept)
    for c in both:
        if a.size(c) != b.size(c):
            call.fail(f"letter '{c}' stands for sizes {a.size(c)} and {b.size(c)}")
    # Letters of only one term that are not kept are summed before the product.
    a = summed(call, a, kept | set(b.letters))
    b = summed(call, b, kept | set(a.letters))
    shared = [c for c in both if c in kept]
    sums = [c for c in both if c not in kept]
    rows = [c for c in a.letters if c not in both]
    columns = [c for c in b.letters if c not in both]
    sizes = [a.size(c) for c in shared]
    images = [math.prod(sizes)]
    left = arranged(call, a, [shared, rows, sums], images)
    right = arranged(call, b, [shared, sums, columns], images)
    y = product(call, left, right)
    letters = (*shared, *rows, *columns)
    shape = [*sizes, *(a.size(c) for c in rows), *(b.size(c) for c in columns)]
    return EinsumTerm(call.reshape(y, shape), letters)


@lowers("Einsum")
def einsum(call: NodeCall) -> Result:
    """The sum that an equation describes."""
    equation = str(call.attribute("equation")).replace(" ", "")
    inputs, arrow, output = equation.partition("->")
    texts = inputs.split(",")
    if len(texts) != len(call):
        call.fail(f"equation '{equation}' has {len(texts)} terms for {len(call)} inputs")
    data_type = call.operand(0).data_type
    computed = data_type if data_type not in ("int8", "uint8") else "int32"
    terms: list[EinsumTerm] = []
    for i, text in enumerate(texts):
        letters = letters_of(call, text, call.tensor(i).rank)
        terms.append(diagonal(call, EinsumTerm(call.cast(call.operand(i), computed), letters)))
    dots = max((sum(c.isdigit() for c in t.letters) for t in terms), default=0)
    if arrow:
        wanted = letters_of(call, output, None, dots)
    else:
        everything = "".join(texts).replace(".", "")
        single = sorted(c for c in set(everything) if everything.count(c) == 1)
        wanted = (*(str(i) for i in reversed(range(dots))), *single)
    given = {c for t in terms for c in t.letters}
    if not set(wanted) <= given or len(set(wanted)) != len(wanted):
        call.fail(f"equation '{equation}' asks for letters that no term has, or twice")
    result = terms[0]
    for i, term in enumerate(terms[1:], 1):
        later = {c for t in terms[i + 1 :] for c in t.letters}
        result = contracted(call, result, term, set(wanted) | later)
    result = summed(call, result, set(wanted))
    # A letter of size 1 may have been dropped. Broadcasting keeps the longer size.
    order = [result.letters.index(c) for c in wanted]
    return call.cast(call.transpose(result.operand, order), data_type)
