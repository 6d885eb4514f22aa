"""The Python code that Jinja generates from templates. A wheel contains it, because its generation takes longer than a run.

Jinja compiles a template to a Python module. That takes 20 to 70 ms for one with its imports, of a first run of half a second
and more. A wheel has these modules in `compiled_templates`. The package uses a module if the template is identical to its
source, and Jinja has the same version. A checkout has no such modules, and Jinja compiles the used templates.

Builds load this file by itself, so it imports nothing of the package.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import MutableMapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2
import jinja2.sandbox

SYNTAX: dict[str, Any] = {
    "undefined": jinja2.StrictUndefined,
    "line_statement_prefix": "$$",
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": True,
    "autoescape": False,
    # Each template renders a few times in a process: to fold its constants takes longer than that saves.
    "optimized": False,
}
"""Jinja's options: `{{ }}` values, `{% %}` blocks, `$$` line statements, and errors for undefined names."""

_MODULES = "compiled_templates"


class TemplateLoader(jinja2.FileSystemLoader):
    """A loader of a folder's templates for one environment, which uses the package's modules of unchanged templates."""

    def load(
        self, environment: jinja2.Environment, name: str, globals: MutableMapping[str, Any] | None = None
    ) -> jinja2.Template:
        """Return a template, which its module renders if there is one."""
        source, file, up_to_date = self.get_source(environment, name)
        module = _module_of(name, source)
        if module is None:
            return super().load(environment, name, globals)
        module.__file__ = file  # errors are of the template's lines
        template = environment.template_class.from_module_dict(environment, vars(module), globals or {})
        # Jinja has no other way to set it.
        template._uptodate = up_to_date  # pyright: ignore[reportPrivateUsage]
        return template


def _module_of(name: str, source: str) -> ModuleType | None:
    package = (__package__ or "").partition(".")[0]
    try:
        module = import_module(f"{package}.{_MODULES}.{_module_name(name)}")
    except ModuleNotFoundError:
        return None
    return module if getattr(module, "made_of", "") == _digest(source) else None


def _module_name(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _digest(source: str) -> str:
    return hashlib.sha256(f"{jinja2.__version__}\0{source}".encode()).hexdigest()


def compile_templates(shaders: Path, folder: Path) -> None:
    """Write the modules of all templates of a folder into another, which becomes a package."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(loader=jinja2.FileSystemLoader(shaders), **SYNTAX)
    (folder / "__init__.py").write_text('"""What Jinja made of the templates in `shaders`."""\n', encoding="utf-8")
    for path in sorted(shaders.rglob("*.j2")):
        name = path.relative_to(shaders).as_posix()
        source = path.read_text(encoding="utf-8")
        code = environment.compile(source, name, name, raw=True, defer_init=True)
        module = folder / f"{_module_name(name)}.py"
        module.write_text(f"{code}\nmade_of = {_digest(source)!r}\n", encoding="utf-8")
