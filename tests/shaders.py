"""Templates that a test may change."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jinja2.meta

from webnn_wgpu.kernels import expression, source_map, sources, templates

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


COMMON_VARIABLES = frozenset(("bindings", "uniforms", "features", "elements", "lib"))
"""Variables every template may use besides its declared parameters."""


def forget_templates() -> None:
    """Have templates read and rendered again."""
    caches: list[Any] = [templates.environment, templates._library_file, templates.library_functions, templates.render]
    # Formulas know the files of the functions that they call.
    caches += [expression._parsed, source_map._environment, source_map._marked_file, sources.templates_digest]
    for cached in caches:
        cached.cache_clear()


@contextmanager
def changed_shaders(folder: Path, *changes: tuple[str, str, str]) -> Iterator[Path]:
    """Have templates taken from a copy of theirs for a while.

    Args:
        folder: an empty one, for the copy.
        changes: file below it, what stands in it, what is put there instead.
    """
    find = templates.shader_root
    for file in find().rglob("*.wgsl*"):
        copy = folder / file.relative_to(find())
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    for name, old, new in changes:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")
    templates.shader_root = sources.shader_root = lambda: folder
    forget_templates()
    try:
        yield folder
    finally:
        templates.shader_root = sources.shader_root = find
        forget_templates()


def free_variables(template: str) -> frozenset[str]:
    """Return the names that a template depends on, besides those that every template gets."""
    env = templates.environment()
    assert env.loader is not None
    source, _, _ = env.loader.get_source(env, f"ops/{template}.wgsl.j2")
    return frozenset(jinja2.meta.find_undeclared_variables(env.parse(source))) - COMMON_VARIABLES
