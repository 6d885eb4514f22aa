"""All of the `onnx` package's backend tests: which do not pass, and why."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.onnx.backend import cases, run
from tests.rotation import SHARES as ROTATED

DIFFERENT = {
    r"test_bernoulli.*": "random results, of another generator",
    r"test_attention_.*(bf16|fp16).*": "the reference rounds after every step, sums included; a unit in the last place",
    r"test_dft_inverse(_opset19)?": "the reference's noise of 2e-7, where the result is 0 and the largest element is 45",
}
"""Tests whose results differ from the reference's, and why."""

ON_HOST = {
    r"test_(bernoulli.*|training_dropout.*)": "random",
    r"test_(nonzero|unique|compress|nonmaxsuppression).*": "the shape of the result depends on elements",
    r"test_(loop11|range_.*_expanded)": "a number of iterations that is fed",
    r"test_scan_sum": "a Scan over batches of sequences of different lengths",
    r"test_bitcast_.*": "no operator reads the bits of floats as integers",
    r"test_cast_e8m0_.*": "rounding to powers of two down to 2^-127",
    r"test_(image_decoder|tfidfvectorizer|optional).*": "what is no operator on tensors of numbers",
    r"test_reshape_allowzero_reordered": "a tensor without elements",
}
"""Tests that leave nodes to the host, and why."""

SHARES = 8

EXPANDED = re.compile("_expanded(_ver[0-9]+)?$")
"""Tests that repeat another one with the operator replaced by the function that defines it."""


def known(name: str, table: dict[str, str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in table)


def test_there_are_as_many_as_the_package_has():
    assert len(cases()) > 1700


def test_few_are_known_to_differ():
    different = [case.name for case in cases() if known(case.name, DIFFERENT)]
    assert len(different) < 0.03 * len(cases()), different


@pytest.mark.parametrize("share", range(SHARES))
def test_backend_tests(context, share):
    verdicts = check(context, [case for case in cases() if not EXPANDED.search(case.name)][share::SHARES])
    assert verdicts["pass"] > 0.97 * sum(verdicts.values()), verdicts


@pytest.mark.repeats
@pytest.mark.parametrize("share", range(ROTATED))
def test_backend_tests_of_operators_as_functions(context, share):
    check(context, [case for case in cases() if EXPANDED.search(case.name)][share::ROTATED])


def check(context, some):
    verdicts: Counter[str] = Counter()
    problems: list[str] = []
    for case in some:
        verdict, why = run(case, context)
        verdicts[verdict] += 1
        if verdict != "pass" and not (verdict == "wrong" and known(case.name, DIFFERENT)):
            problems.append(f"{case.name}: {verdict}: {why}")
        elif verdict == "pass" and why == "host" and not known(case.name, ON_HOST):
            problems.append(f"{case.name}: left to the host")
    assert not problems, "\n".join(problems)
    return verdicts
