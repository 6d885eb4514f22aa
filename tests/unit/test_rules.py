"""Every rule of the passes holds for all forms of its own pattern, and for nothing that is almost one."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from tests.unit.rule_examples import BROKEN
from tests.unit.rules import RULES, Change, Example, forms, near_misses
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.passes import PASSES
from webnn_wgpu.passes.rewriting import rewrite
from webnn_wgpu.reference import interpret


@pytest.mark.parametrize("name", RULES)
def test_a_rule_holds_for_every_form_of_its_pattern(name: str) -> None:
    rule, results = RULES[name], set[str]()
    for form in forms(rule):
        example = Example(rule, form)
        graph = example.graph()
        after = verify(rewrite(graph, rule))
        assert after is not graph, form
        results.add(after.nodes[-1].op)
        (found,), (wanted,) = interpret(after, example.sketch.feeds).values(), interpret(graph, example.sketch.feeds).values()
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=1e-5, atol=1e-6)
    assert rule.build is not None or results <= set(rule.result.operator.names)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_holds_for_no_near_miss_of_its_pattern(name: str) -> None:
    rule, count = RULES[name], 0
    for form in forms(rule):
        for what, graph in near_misses(rule, form):
            assert rewrite(graph, rule) is graph, (what, form)
            count += 1
    assert count


@pytest.mark.parametrize(("name", "condition"), [(name, text) for name, rule in RULES.items() for text in rule.where])
def test_a_rule_does_not_hold_where_a_condition_does_not(name: str, condition: str) -> None:
    rule = RULES[name]
    count = 0
    for form in forms(rule):
        try:
            graph = Example(rule, form, Change(given=BROKEN[name][condition])).graph()
        except MLTypeError:
            continue
        assert rewrite(graph, rule) is graph, form
        # This condition is enough to keep the rule from holding.
        matched = [Mock(return_value=False) for _ in range(2)]
        for where, build in zip(({}, {condition: rule.where[condition]}), matched, strict=True):
            rewrite(graph, replace(rule, where=where, build=build))
        assert [build.called for build in matched] == [True, False], form
        count += 1
    assert count


def test_rules_have_names_of_their_own() -> None:
    rules = [rule for each in PASSES for rule in each.rules]
    assert len({rule.name for rule in rules}) == len(rules)
