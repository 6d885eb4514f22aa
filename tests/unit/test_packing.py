"""Packed constants have the shape and the size that are told before anything is packed."""

from __future__ import annotations

import numpy as np
import pytest

from webnn_wgpu.kernels.packing import (
    Chain,
    Columns,
    PanelTexture,
    Permuted,
    PersistentTexture,
    Transposed,
    UnitTexture,
    WinogradFilter,
)
from webnn_wgpu.kernels.spec import Packing


@pytest.mark.parametrize(
    ("packing", "shape"),
    [
        (Transposed(), (2, 3, 4)),
        (Columns(1, 3, rows=5), (5, 4)),
        (Columns(1, 3, rows=4, transposed=True), (6, 4)),
        (Permuted((3, 2, 5), (2, 0, 1)), (30,)),
        (WinogradFilter(), (3, 3, 4, 8)),
        (PanelTexture(lanes=8, quads=2, width=16384), (70, 100)),
        (PanelTexture(lanes=8, quads=2, width=16384, transposed=True), (3, 100, 70)),
        (PanelTexture(lanes=4, quads=1, width=128), (33, 40)),
        (PanelTexture(lanes=8, quads=2.5, width=16384), (70, 100)),
        (PanelTexture(lanes=4, quads=0.5, width=128, transposed=True), (2, 40, 33)),
        (PanelTexture(lanes=8, quads=1, width=128), (16, 64)),
        (UnitTexture(8, 4, 40, 16384), (2, 160, 40)),
        (UnitTexture(8, 3, 64, 2048), (1, 192, 64)),
        (PersistentTexture(8, 3, 20), (2, 60, 20)),
        (Chain(WinogradFilter(), PanelTexture(lanes=8, quads=1, width=16384)), (3, 3, 4, 8)),
        (Chain(Permuted((6, 5), (1, 0)), Columns(2, 5, rows=5)), (30,)),
    ],
    ids=str,
)
@pytest.mark.parametrize("data_type", [np.float32, np.float16])
def test_shapes_are_told_before_packing(packing: Packing, shape: tuple[int, ...], data_type: type) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(data_type)
    packed = packing.pack(array)
    assert packed.shape == packing.packed_shape(shape)
    if not packing.texture:
        assert packed.nbytes == packing.size_bytes(shape, array.itemsize)


@pytest.mark.parametrize("K", [5, 1280, 1536, 3072, 4096, 70_000])
def test_rows_of_a_texture_are_about_equally_full(K: int) -> None:
    packing = PanelTexture(lanes=8, quads=2, width=16384)
    steps, wraps = packing.wrap_steps(K), packing.wraps(K)
    assert steps % 4 == 0
    assert steps * packing.lanes * packing.quads < packing.width
    assert (wraps - 1) * steps < K <= wraps * steps < K + 4 * (wraps + 1)


def test_weights_take_little_more_than_they_are() -> None:
    """Without three rows to a panel the four rows of the first were five, the two of the second three."""
    for K, N in ((384, 384), (192, 192), (768, 192), (192, 768)):
        height, width, _ = PanelTexture(lanes=8, quads=3, width=16384).smallest(K, N, 1).packed_shape((K, N))
        assert height * width * 4 == K * N
    wide = PanelTexture(lanes=8, quads=1, width=16384)
    assert wide.smallest(512, 32 * 64, 1) == wide  # one more row of 64 is not worth a loop over rows
    narrow = PanelTexture(lanes=8, quads=1, width=16)
    assert narrow.smallest(8, 32 * 8, 1) == narrow  # 24 rows would not fit
