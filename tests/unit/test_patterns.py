"""Patterns are found where a graph is what they say, in bounded time, and rules that fail leave nothing behind."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch
from tests.unit.rewrites import check, normal, number, unchanged
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.passes.matching import Match, matches
from webnn_wgpu.passes.patterns import AnyNumber, Number, Operator, Option, Variable, parts, product
from webnn_wgpu.passes.rewriting import Rewriter, rewrite
from webnn_wgpu.passes.rules import Computed, Rule
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Graph, Node
    from webnn_wgpu.passes.patterns import Pattern

x, y, n = Variable("x"), Variable("y"), AnyNumber("n")
exp, tanh, identity, clamp, concat = (Operator(name) for name in ("exp", "tanh", "identity", "clamp", "concat"))


def found(graph: Graph, pattern: Pattern) -> list[Match]:
    """Return the matches of a pattern that ends in the last node of a graph."""
    r = Rewriter(graph)
    for node in graph.nodes[:-1]:
        r.keep(node)
    return list(matches(r, pattern, graph.nodes[-1]))


# ----------------------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (x - (y - n), "x - (y - n)"),
        (x - y - n, "x - y - n"),
        (x + (y + n), "x + y + n"),
        ((x + y) * n, "(x + y) * n"),
        (1 / (x * y), "1 / (x * y)"),
        (-x * y, "-x * y"),
        (-(x * y), "-(x * y)"),
        ((-x) ** 2, "(-x) ** 2"),
        (x**0.5 | 3 - x | exp(x), "x ** 0.5 | 3 - x | exp(x)"),
        (exp(x | -x) / Number(math.pi, "pi"), "exp(x | -x) / pi"),
        (product(0.5, x, 1 + y), "0.5 * x * (1 + y)"),
        (clamp(x, ..., min_value=0, max_value=n), "clamp(x, ..., min_value=0, max_value=n)"),
        (concat(x, Variable("z", optional=True), None, axis=Option("axis")), "concat(x, [z], none, axis)"),
        (Operator("conv2d", "convTranspose2d", text="convolution")(x, y), "convolution(x, y)"),
        ((x + 1).named("d") * exp((x + 1).named("d")), "d * exp(d)"),
    ],
)
def test_patterns_print_as_formulas(pattern: Pattern, text: str) -> None:
    assert str(pattern) == text


def test_rules_print_their_parts_and_conditions() -> None:
    d = (x - n).named("d")
    rule = Rule(name="r", pattern=exp(d) / d, result=tanh(x), where={"n > 0": lambda m: m[n] > 0})
    assert rule.describe() == "tanh(x) <- exp(d) / d\n    where d = x - n\n    if n > 0"
    assert [str(p) for p in parts(rule.pattern)] == ["exp(d) / d", "exp(d)", "d", "x", "n"]


def test_operators_and_options_must_exist() -> None:
    with pytest.raises(AssertionError, match="no such operators: \\['sine'\\]"):
        Operator("sine")
    with pytest.raises(AssertionError, match="exp has no options \\['axis'\\]"):
        exp(x, axis=1)


# -------------------------------------------------------------------------------------------------------------- matching


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("steps", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("wanted", [0.5, math.sqrt(2), -math.pi, 1000.1])
def test_a_number_that_a_data_type_does_not_hold_may_be_a_step_off(wanted: float, steps: int, dtype: Any) -> None:
    value = np.asarray(wanted).astype(dtype)
    for _ in range(abs(steps)):
        value = np.nextafter(value, dtype(math.copysign(np.inf, steps)))
    s = Sketch()
    graph = s.graph(s.apply("mul", s.input(normal(3, dtype=dtype)), s.constant(value)))
    holds = float(dtype(wanted)) == wanted
    expected = float(value) == wanted if holds else abs(float(value) - wanted) <= float(np.spacing(np.abs(dtype(wanted))))
    assert bool(found(graph, x * Number(wanted))) == expected
    assert expected or steps


def test_a_number_leaves_the_shape_of_the_other_operand() -> None:
    s = Sketch()
    graph = s.graph(s.apply("mul", s.input(normal(3)), number(s, 2, shape=(1, 1))))
    assert not found(graph, x * 2)
    assert not found(graph, x * n)
    assert found(graph, x * y)


def test_the_same_pattern_is_the_same_value() -> None:
    s = Sketch()
    a, b = s.input(normal(3)), s.input(normal(3))
    one, two = number(s, 2), number(s, 2)
    same = s.graph(s.apply("sub", s.apply("pow", a, one), s.apply("pow", a, two)))
    assert [m[n] for m in found(same, x**n - x**n)] == [2.0]
    other = s.graph(s.apply("sub", s.apply("pow", a, one), s.apply("pow", a, number(s, 3))))
    assert not found(other, x**n - x**n)
    assert not found(s.graph(s.apply("sub", s.apply("exp", a), s.apply("exp", b))), exp(x) - exp(x))
    part = exp(x)
    apart = s.graph(s.apply("sub", s.apply("exp", a), s.apply("exp", a)))
    assert not found(apart, part - part)
    assert found(apart, exp(x) - exp(x))


def test_options_are_equal_wherever_they_stand() -> None:
    axis = Option[int]("axis")
    pattern = concat(concat(x, x, axis=axis), y, axis=axis)
    for inner, outer in ((0, 0), (0, 1)):
        s = Sketch()
        a = s.input(normal(2, 2))
        both = s.apply("concat", s.apply("concat", a, a, axis=inner), s.input(normal(*((2, 2), (4, 1))[outer])), axis=outer)
        assert [m[axis] for m in found(s.graph(both), pattern)] == ([0] if inner == outer else [])


def test_operands_that_are_absent_or_more() -> None:
    s = Sketch()
    a, b, c = s.input(normal(2, 2)), s.input(normal(2, 2)), s.input(normal(2, 2))
    gemm, bias = Operator("gemm"), Variable("bias", optional=True)
    for with_bias in (False, True):
        graph = s.graph(s.apply("gemm", a, b, *([c] if with_bias else [])))
        assert bool(found(graph, gemm(x, y))) != with_bias
        assert bool(found(graph, gemm(x, y, None))) != with_bias
        assert bool(found(graph, gemm(x, y, n | exp(x)))) is False
        (match,) = found(graph, gemm(x, y, bias))
        assert match.get(bias) == (c if with_bias else None)
        assert (bias in match) == with_bias
        assert found(graph, gemm(x, ...))
    assert len(found(s.graph(s.apply("concat", a, b, c, axis=0)), concat(x, y, ...))) == 1
    assert not found(s.graph(s.apply("concat", a, b, c, axis=0)), concat(x, y))


@pytest.mark.parametrize("extra", ["", "an output", "read again"])
def test_values_inside_a_match_are_its_own(extra: str) -> None:
    s = Sketch()
    e = s.apply("exp", s.input(normal(3)))
    outputs = [e] if extra == "an output" else [s.apply("neg", e)] if extra else []
    graph = s.graph(s.apply("tanh", e), *outputs)
    assert bool(found(graph, tanh(exp(x)))) == (not extra)
    assert found(graph, tanh(exp(x).shared()))


def test_a_value_may_be_read_by_several_nodes_of_a_match() -> None:
    s = Sketch()
    e = s.apply("exp", s.input(normal(3)))
    t = s.apply("tanh", e)
    part = exp(x)
    assert found(s.graph(s.apply("sub", t, e)), tanh(part) - part)
    s.apply("neg", e)
    third = s.nodes.pop()
    s.nodes.insert(2, third)
    assert not found(s.graph(s.nodes[-1].outputs[0], third.outputs[0]), tanh(part) - part)


def test_types_and_constants() -> None:
    s = Sketch()
    a, c = s.input(normal(3)), s.constant(normal(3))
    graph = s.graph(s.apply("mul", a, c))
    constant = Variable("c", constant=True)
    (match,) = found(graph, constant * x)
    assert (match[constant], match[x], match.nodes) == (c, a, graph.nodes)
    assert found(graph, Variable("a", types=("float32",)) * x)
    assert not found(graph, Variable("a", types=("int32",)) * Variable("b", types=("int32",)))
    assert found(graph, (x * y).of("float32"))
    assert not found(graph, (x * y).of("float16", "int32"))


def test_every_way_to_match_is_found_once() -> None:
    s = Sketch()
    a, b = s.input(normal(3)), s.input(normal(3))
    assert [(m[x], m[y]) for m in found(s.graph(s.apply("add", a, b)), x + y)] == [(a, b), (b, a)]
    assert len(found(s.graph(s.apply("add", a, a)), x + y)) == 1


def test_factors_match_in_every_order() -> None:
    pattern = product(exp(x), x, 0.5)
    for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        for last_first in (False, True):
            s = Sketch()
            a = s.input(normal(3))
            first, second, third = ((s.apply("exp", a), a, number(s, 0.5))[i] for i in order)
            pair = s.apply("mul", first, second)
            end = s.apply("mul", *((third, pair) if last_first else (pair, third)))
            assert [m[x] for m in found(s.graph(end), pattern)] == [a]
            assert not found(s.graph(end, pair), pattern)


def test_matching_takes_steps_that_the_pattern_bounds() -> None:
    s = Sketch()
    values = [s.input(normal(2)), s.input(normal(2))]
    for _ in range(300):
        values.append(s.apply("add", values[-1], values[-2]))
        values.append(s.apply("add", values[-1], values[-1]))
    sum_: Pattern = x
    for _ in range(7):
        sum_ = Operator("add")(sum_, y).shared() | exp(x)
    graph = s.graph(values[-1])
    assert not found(graph, sum_ * 2 | sum_ + exp(y))


# ----------------------------------------------------------------------------------------------------------------- rules


def test_a_rule_that_fails_on_its_way_leaves_nothing_behind() -> None:
    def half(m: Match, node: Node) -> bool:
        r = m.r
        view = r.reshaped(m[x], (3, 1), (node,))
        r.remembered["half"] = r.add("exp", (r.constant(np.ones(3, np.float32), view),), {}, (node,))
        r.add("tanh", (m[x],), {}, (node,), node.outputs[0])
        return False

    def refused(m: Match, node: Node) -> bool:
        m.r.add("exp", (m[x],), {}, (node,))
        m.r.add("reshape", (m[x],), {"new_shape": (7,)}, (node,), node.outputs[0])
        return True

    s = Sketch()
    flat = s.apply("reshape", s.input(normal(1, 3)), new_shape=[3])
    graph = s.graph(s.apply("exp", flat))
    for build in (half, refused):
        rule = Rule(name="fails", pattern=exp(x), result=tanh(x), build=build)
        unchanged(lambda g, rule=rule: rewrite(g, rule), graph)
        r = Rewriter(graph)
        r.keep(graph.nodes[0])
        before = (list(r.nodes), dict(r.constants), dict(r.remembered), vars(r)["_values"].copy(), vars(r)["_made"].copy())
        assert not rule(r, graph.nodes[1])
        assert (r.nodes, r.constants, r.remembered, vars(r)["_values"], vars(r)["_made"]) == before
        assert r.made(graph.nodes[1].outputs[0], "tanh") is None
        r.keep(graph.nodes[1])
        verify(r.graph())
        assert [node.op for node in r.graph().nodes] == ["reshape", "exp"]


def test_a_computed_operand_may_refuse() -> None:
    first = Computed("x", lambda m: m[x] if m.r.shape(m[x]) == (3,) else None)
    rule = Rule(name="either operand", pattern=x * y, result=identity(first))
    for shapes, holds in ((((3,), (1,)), True), (((1,), (3,)), True), (((2,), (1,)), False)):
        s = Sketch()
        graph = s.graph(s.apply("mul", *(s.input(np.ones(shape, np.float32)) for shape in shapes)))
        after = rewrite(graph, rule)
        assert (after is not graph) == holds
        if holds:
            (result,) = interpret(verify(after), s.feeds).values()
            assert result.shape == (3,)


def test_results_have_labels_and_origins_of_all_nodes() -> None:
    s = Sketch()
    e = s.apply("exp", s.input(normal(3)), label="first")
    graph = s.graph(s.apply("neg", e))
    negated = Operator("neg")
    rule = Rule(name="nested", pattern=-exp(x), result=negated(negated(-exp(x))))
    after = check(lambda g: rewrite(g, rule), graph, s.feeds, ["exp", "neg", "neg", "neg"])
    assert [[o.node for o in node.origins] for node in after.nodes] == [[0, 1]] * 4
    assert {node.label for node in after.nodes} == {"first"}
