"""The loading and rendering of WGSL templates.

Templates can read files of `shaders/` alone, and of their arguments the data, not the Python objects behind it.
`jinja2.sandbox` refuses everything besides the generation of text. No text of an application is a template: its own WGSL is
used unchanged.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

import jinja2
import jinja2.ext
import jinja2.sandbox

from ..core.errors import OperationError
from .dbg import without_dbg
from .element import ELEMENTS
from .spec import KernelSpec
from .template_code import SYNTAX, TemplateLoader

_SOURCES = 64
"""Rendered sources that are kept: those of a model, which several devices may need."""


@cache
def shader_root() -> Path:
    """Return the folder of the templates: packaged in a wheel, or beside the package in a checkout.

    Raises:
        FileNotFoundError: neither exists. The message names both.
    """
    package = Path(__file__).resolve().parent.parent
    packaged, checkout = package / "shaders", package.parent / "shaders"
    if packaged.is_dir():
        return packaged
    # A bare "shaders" beside site-packages belongs to another package: only a checkout has pyproject.toml there.
    if checkout.is_dir() and (package.parent / "pyproject.toml").is_file():
        return checkout
    raise FileNotFoundError(f"WGSL templates are neither in {packaged} nor, for a checkout, in {checkout}")


class _Sandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Jinja's sandbox, which decides once for each attribute of a type.

    Its rules depend on nothing else, and took a third of the time of rendering.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._decisions: dict[tuple[type[Any], str], bool] = {}

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether templates may read an attribute."""
        kind = cast("type[Any]", type(obj))
        key = kind, attr
        found = self._decisions.get(key)
        if found is None:
            found = self._decisions[key] = super().is_safe_attribute(obj, attr, value)
        return found


@cache
def environment(*, hides_uniforms: bool = False) -> jinja2.Environment:
    """Return the template environment, in the syntax of `template_code.SYNTAX`.

    Args:
        hides_uniforms: the variable of this name, which every template and every macro gets. See `KernelSpec`.
    """
    return make_environment(TemplateLoader, hides_uniforms=hides_uniforms)


def make_environment(
    loader: type[jinja2.FileSystemLoader], extensions: Sequence[type[jinja2.ext.Extension]] = (), **variables: Any
) -> jinja2.Environment:
    """Return a template environment, with extensions of Jinja and other values of the variables that every template gets."""
    env = _Sandbox(loader=loader(shader_root()), extensions=extensions, **SYNTAX)
    cast("dict[str, Any]", env.globals).update({"elements": ELEMENTS, "lib": library, "hides_uniforms": False, **variables})
    return env


def library(*names: str) -> str:
    """Return the source of functions of `shaders/lib/math`, each once, behind the functions that it uses.

    Raises:
        FileNotFoundError: the file does not exist, or the name is invalid.
    """
    return "\n".join(library_files(*names).values())


def library_files(*names: str) -> dict[str, str]:
    """Return the files of `library`, name -> text.

    A library file names the files it needs in a line `// uses: exp, bits`.
    """
    sources: dict[str, str] = {}

    def add(name: str) -> None:
        if name in sources:
            return
        text = _library_file(name)
        uses = re.search(r"^// uses:(.*)$", text, re.MULTILINE)
        for used in uses.group(1).split(",") if uses else ():
            add(used.strip())
        sources[name] = text

    for name in names:
        add(name)
    return sources


@cache
def library_functions() -> Mapping[str, str]:
    """Return the functions of `shaders/lib/math`, name -> file.

    >>> library_functions()["is_nan_f32"]
    'bits'
    """
    files = sorted(path.stem for path in (shader_root() / "lib" / "math").glob("*.wgsl"))
    return {found: name for name in files for found in re.findall(r"^fn (\w+)", _library_file(name), re.MULTILINE)}


@cache
def _library_file(name: str) -> str:
    if not re.fullmatch(r"\w+", name):
        raise FileNotFoundError(f"{name!r} is no name of a library file")
    return (shader_root() / "lib" / "math" / f"{name}.wgsl").read_text(encoding="utf-8")


@lru_cache(_SOURCES)
def render(spec: KernelSpec, folder: str = "ops") -> str:
    """Return the WGSL of a kernel with a template in a folder of `shaders/`."""
    return without_dbg(spec.source or render_with_dbg(spec, folder))


def render_with_dbg(spec: KernelSpec, folder: str = "ops", env: jinja2.Environment | None = None) -> str:
    """Return the rendered template of a kernel, with its `dbg` statements.

    Args:
        spec: a kernel with a template.
        folder: the folder of the template below `shaders/`.
        env: an environment. None is `environment`'s for the kernel.

    Raises:
        OperationError: Jinja rejects the template. The message names file and line.
    """
    params: dict[str, Any] = dict(spec.params)
    file = template_file(spec, folder)
    try:
        template = (env or environment(hides_uniforms=spec.hides_uniforms)).get_template(file)
        return template.render(**params, bindings=spec.bindings, uniforms=spec.uniforms, features=spec.features)
    except jinja2.TemplateError as error:
        raise OperationError(f"template {file} does not render: {_place(error)}{error.message}", got=str(spec)) from error


def _place(error: jinja2.TemplateError) -> str:
    """Return the file and line of a template error, with a colon behind each, or "" if they are unknown."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.name}:{error.lineno}: "
    root = shader_root()
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    places = [(path.relative_to(root).as_posix(), line) for path, line in frames if path.is_relative_to(root)]
    return f"{places[-1][0]}:{places[-1][1]}: " if places else ""


def template_file(spec: KernelSpec, folder: str = "ops") -> str:
    """Return the path of a kernel's template below `shaders/`."""
    return f"{folder}/{spec.template}.wgsl.j2"
