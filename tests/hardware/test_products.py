"""`python -m tests.hardware.products`, on the adapter of the tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.hardware import products
from webnn_wgpu.costs.tiles import BlockTile, block_tile

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.device


def test_a_record_has_the_times_of_tiles_and_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = [(block_tile((16, 16, 8)), 1), (block_tile((32, 32)), 2)]

    def two(*_: object) -> list[tuple[BlockTile, int]]:
        return tiles

    monkeypatch.setattr(products, "candidates", two)
    record = json.loads(products.main(["--only", "16x32x256", "--output", str(tmp_path)]).read_text(encoding="utf-8"))
    (product,) = record["products"]
    assert product["size"] == [16, 32, 256, 1]
    assert set(product["microseconds"]) == {"16x16x8/1", "32x32/2"}
    assert all(us > 0 for us in product["microseconds"].values())


def test_without_time_no_product_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads(products.main(["--minutes", "-1", "--output", str(tmp_path)]).read_text(encoding="utf-8"))
    assert record["products"] == []
    assert f"{len(products.SIZES)} products are left out" in capsys.readouterr().out
