"""Terms as trees, their notation, and the WGSL that they print."""

from __future__ import annotations

import pytest

from webnn_wgpu.kernels.notation import term
from webnn_wgpu.kernels.terms import (
    OPAQUE_ZERO,
    Bitcast,
    Component,
    FunctionCall,
    Hidden,
    Infix,
    Numeral,
    Parentheses,
    Prefix,
    Rounded,
    Symbol,
    Term,
    Uniform,
)

A, B, C = Symbol("a"), Symbol("b"), Symbol("c")
DIFFERENCE = Infix("-", A, B)

TREES = {
    "a": A,
    "params.alpha": Uniform("alpha"),
    "31u": Numeral("31u"),
    "0xffu": Numeral("0xffu"),
    "1.5e-05": Numeral("1.5e-05"),
    "63lu": Numeral("63lu"),
    "select(0u, 1u, a == b)": FunctionCall("select", (Numeral("0u"), Numeral("1u"), Infix("==", A, B))),
    "i64x2(a, 0u)": FunctionCall("i64x2", (A, Numeral("0u"))),
    "bitcast<i32>(a.x)": Bitcast(Component(A, "x"), "i32"),
    "(a + b)": Parentheses(Infix("+", A, B)),
    "-(a)": Prefix("-", Parentheses(A)),
    "~a": Prefix("~", A),
    "-128i": Prefix("-", Numeral("128i")),
    "a + b * c": Infix("+", A, Infix("*", B, C)),
    "a - b - c": Infix("-", Infix("-", A, B), C),
    "a - (b - c)": Infix("-", A, Parentheses(Infix("-", B, C))),
    "a * b >= c + a": Infix(">=", Infix("*", A, B), Infix("+", C, A)),
    "a | b | c": Infix("|", Infix("|", A, B), C),
    "a << (b & 31u)": Infix("<<", A, Parentheses(Infix("&", B, Numeral("31u")))),
    "(a != 0u) & (b != 0u)": Infix("&", Parentheses(Infix("!=", A, Numeral("0u"))), Parentheses(Infix("!=", B, Numeral("0u")))),
}


@pytest.mark.parametrize("text", TREES)
def test_the_notation_is_parsed_into_trees_that_print_it(text: str) -> None:
    assert term(text) == TREES[text]
    assert str(TREES[text]) == text
    assert repr(TREES[text]) == f"'{text}'"


def test_spaces_do_not_count() -> None:
    assert term(" max( a,b )*c ") == term("max(a, b) * c")


def test_a_type_is_inserted_in_the_notation() -> None:
    assert str(term("div_T(a, T(1)) + bitcast<T>(T_of(b))", "u32")) == "div_u32(a, u32(1)) + bitcast<u32>(T_of(b))"
    with pytest.raises(ValueError, match=r"^'T\(1\)' has T, but no type is given for it$"):
        term("T(1)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a name must stand at column 1 of ''"),
        ("a +", r"a name must stand at column 4 of 'a \+'"),
        ("a b", "an operator must stand at column 2 of 'a b'"),
        ("f(a", r"\) must stand at column 4 of 'f\(a'"),
        ("f()", r"a name must stand at column 3 of 'f\(\)'"),
        ("a ? b : c", "a number, a name or an operator must stand at column 2"),
        ("{0} + 1.0", "a number, a name or an operator must stand at column 1"),
        ("params", r"\. must stand at column 7"),
        ("a && b", "a name must stand at column 4"),
        ("bitcast(a)", "< must stand at column 8"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        term(text)


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (Infix("*", Infix("+", A, B), C), "(a + b) * c"),
        (Infix("-", A, Infix("-", B, C)), "a - (b - c)"),
        (Infix("-", A, Infix("+", B, C)), "a - (b + c)"),
        (Infix("-", DIFFERENCE, DIFFERENCE), "a - b - (a - b)"),
        (Infix("/", A, Infix("*", B, C)), "a / (b * c)"),
        (Infix("<<", Infix("+", A, B), C), "(a + b) << c"),
        (Infix("+", Infix("<<", A, B), C), "(a << b) + c"),
        (Infix("&", A, Infix("&", B, C)), "a & (b & c)"),
        (Infix("|", Infix("&", A, B), C), "(a & b) | c"),
        (Infix("==", Infix("<", A, B), C), "(a < b) == c"),
        (Infix("<", A, Infix("&", B, C)), "a < (b & c)"),
        (Prefix("-", Infix("+", A, B)), "-(a + b)"),
        (Prefix("-", Prefix("-", A)), "-(-a)"),
        (Component(Infix("+", A, B), "x"), "(a + b).x"),
        (FunctionCall("max", (Infix("+", A, B), C)), "max(a + b, c)"),
    ],
)
def test_trees_are_printed_with_the_parentheses_that_wgsl_needs(tree: Term, text: str) -> None:
    assert str(tree) == text


def test_values_are_rounded_to_data_types_narrower_than_what_computes_them() -> None:
    value = Infix("<<", A, B)
    assert [str(Rounded(value, data_type)) for data_type in ("float16", "int8", "uint8")] == [
        "round_float16(a << b)",
        "extractBits(a << b, 0u, 8u)",
        "((a << b) & 0xffu)",
    ]


def test_each_hidden_value_is_hidden_by_another_zero() -> None:
    texts = {str(Hidden(A, number)) for number in range(1, 33)}
    assert len(texts) == 32
    assert str(Hidden(A, 33)) == str(Hidden(A, 1)) == f"bitcast<f32>(bitcast<u32>(a) ^ (params.{OPAQUE_ZERO} << 1u))"


def test_trees_are_keys() -> None:
    one, two = term("select(a, b, c >= 0.0)"), term.__wrapped__("select(a, b, c >= 0.0)")
    assert one is not two
    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two, term("select(a, c, c >= 0.0)"), term("select(a, b, c > 0.0)")}) == 3


def test_nodes_of_different_kinds_differ_whatever_they_hold() -> None:
    assert len({Symbol("a"), Uniform("a"), Numeral("a")}) == 3
    assert Parentheses(A) != A
    assert Rounded(A, "int8") != Rounded(A, "float16")


def test_names_are_substituted_and_all_else_stays() -> None:
    found = term("max(x, x * params.x) + x_y + x.x").substituted({"x": Hidden(A, 1), "a": B})
    hidden = str(Hidden(A, 1))
    assert str(found) == f"max({hidden}, {hidden} * params.x) + x_y + {hidden}.x"
    same = term("exp_f32(y)")
    assert same.substituted({"x": A}) is same


def test_every_node_is_walked_and_rewritten() -> None:
    tree = Rounded(Hidden(term("bitcast<i32>(-(a.x) + f(b, params.c)) ^ 1u"), 1), "float16")
    assert [str(each) for each in tree.walk() if isinstance(each, Symbol | Uniform | Numeral)] == ["a", "b", "params.c", "1u"]
    kinds = [type(each).__name__ for each in tree.walk()]
    assert kinds.count("Infix") == 2
    assert kinds[-2:] == ["Hidden", "Rounded"]
    seen: list[Term] = []

    def noted(each: Term) -> Term:
        seen.append(each)
        return Uniform("d") if each == Uniform("c") else each

    assert str(tree.rewritten(noted)) == str(tree).replace("params.c", "params.d")
    assert len(seen) == len(kinds)
