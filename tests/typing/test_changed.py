"""The type checker looks at what a change can affect."""

from __future__ import annotations

import pytest

from tests.typing import __main__ as types

IMPORTERS = {
    "p/a.py": {"p/b.py", "p/ops/__init__.py"},
    "p/b.py": {"p/c.py"},
    "p/ops/__init__.py": {"p/d.py", "p/__init__.py"},
    "p/__init__.py": {"p/e.py"},
}


def test_importers_are_affected_and_what_packages_pass_on_reaches_further() -> None:
    assert types.affected({"p/c.py"}, IMPORTERS) == {"p/c.py"}
    assert types.affected({"p/b.py"}, IMPORTERS) == {"p/b.py", "p/c.py"}
    everything = {"p/a.py", "p/b.py", "p/ops/__init__.py", "p/d.py", "p/__init__.py", "p/e.py"}
    assert types.affected({"p/a.py"}, IMPORTERS) == everything


def test_changed_modules_are_checked_with_their_importers() -> None:
    found = types.sources()
    checked = types.to_check(found, {**found, "webnn_wgpu/formats/weights.py": "other"})
    assert checked is not None
    assert {"webnn_wgpu/formats/weights.py", "webnn_wgpu/formats/reading.py"} <= set(checked)
    assert len(checked) < len(found) / 4
    assert types.to_check(found, found) == []


@pytest.mark.parametrize("record", [None, {"webnn_wgpu/gone.py": ""}])
def test_all_modules_are_checked_without_a_record_and_when_a_module_is_gone(record: dict[str, str] | None) -> None:
    assert types.to_check(types.sources(), record) is None
