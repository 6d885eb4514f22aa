"""Where the boxes of a graph lie."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from webnn_wgpu.display.layered_drawing import LONGEST, Drawing, draw


@st.composite
def graphs(draws: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    count = draws(st.integers(1, 24))
    sizes = draws(
        st.lists(st.tuples(st.sampled_from([20.0, 90.0, 250.0]), st.sampled_from([20.0, 54.0])), min_size=count, max_size=count)
    )
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = draws(st.lists(st.sampled_from(pairs), unique=True, max_size=40)) if pairs else []
    return sizes, edges


def check(sizes: list[tuple[float, float]], edges: list[tuple[int, int]], drawing: Drawing) -> None:
    boxes = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for (x, y), (w, h) in zip(drawing.centers, sizes, strict=True)]
    for left, top, right, bottom in boxes:
        assert left >= -0.1
        assert top >= -0.1
        assert right <= drawing.width + 0.1
        assert bottom <= drawing.height + 0.1
    for one, other in combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1], "boxes overlap"
    for (a, b), line in zip(edges, drawing.lines, strict=True):
        assert boxes[b][1] > boxes[a][3], "what is read stands above its reader"
        (x0, y0), (x1, y1) = line[0], line[-1]
        assert boxes[a][0] <= x0 <= boxes[a][2]
        assert abs(y0 - boxes[a][3]) <= 0.1
        assert boxes[b][0] <= x1 <= boxes[b][2]
        assert abs(y1 - boxes[b][1]) <= 0.1
        assert all(lower[1] >= upper[1] for upper, lower in pairwise(line))
        for x, y in line[1:-1]:
            assert not any(left < x < right and top < y < bottom for left, top, right, bottom in boxes), "a line crosses a box"


@given(graphs())
def test_boxes_keep_apart_and_lines_lead_down_from_one_to_the_other(
    graph: tuple[list[tuple[float, float]], list[tuple[int, int]]],
) -> None:
    sizes, edges = graph
    drawing = draw(sizes, edges)
    check(sizes, edges, drawing)
    assert draw(sizes, edges) == drawing


def test_nothing_to_draw() -> None:
    assert draw([], []) == Drawing((), (), 0.0, 0.0)


def test_a_chain_is_straight_also_where_a_line_passes_it() -> None:
    drawing = draw([(80.0, 40.0)] * 5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    columns = [x for x, _ in drawing.centers]
    assert max(columns) - min(columns) < 40


def test_inputs_stand_right_above_their_first_reader() -> None:
    drawing = draw([(80.0, 40.0)] * 5, [(0, 2), (2, 3), (3, 4), (1, 4)])
    assert drawing.centers[1][1] == drawing.centers[3][1]


def test_a_line_from_too_far_away_is_left_out() -> None:
    count = LONGEST + 3
    chain = [(i, i + 1) for i in range(count - 1)]
    drawing = draw([(80.0, 40.0)] * count, [*chain, (0, LONGEST), (0, LONGEST + 1)])
    assert len(drawing.lines[-2]) >= 2
    assert drawing.lines[-1] == ()


def test_lines_cross_no_more_than_they_must() -> None:
    # Two chains that are given in turns and crosswise.
    edges = [(0, 3), (1, 2), (2, 5), (3, 4)]
    centers = draw([(80.0, 40.0)] * 6, edges).centers
    left = {0: 0, 3: 0, 4: 0, 1: 1, 2: 1, 5: 1}
    first = centers[0][0] < centers[1][0]
    assert [x < 60 for x, _ in centers] == [(left[i] == 0) == first for i in range(6)]
