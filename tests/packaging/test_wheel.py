"""The package as users get it: templates in the wheel, and in the checkout when the install is an editable one."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# Run far from the checkout. Prints where the package and its templates were found, then runs a graph on the device.
PROGRAM = """
import sys
import numpy as np
import webnn_wgpu as wn
from webnn_wgpu.kernels.templates import shader_root

print(wn.__file__)
print(shader_root())
context = wn.ml.create_context()
builder = wn.MLGraphBuilder(context)
x = builder.input("x", {"dataType": "float32", "shape": [2, 2]})
graph = builder.build({"y": builder.relu(x)})
result = context.compute(graph, {"x": np.array([[-1, 2], [3, -4]], np.float32)})["y"]
assert result.dtype == np.float32 and result.tolist() == [[0, 2], [3, 0]], result
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a command without the caller's PYTHONPATH, which would lead to the checkout; returns what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def make_environment(folder: Path) -> Path:
    """A virtual environment of its own that borrows the libraries of the one the tests run in; returns its Python.

    Python reads no .pth file in a directory that a .pth file names. So the borrowed environment's own editable install,
    which is such a file, stays out.
    """
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    paths = sysconfig.get_paths("venv", vars={"base": str(folder), "platbase": str(folder), "installed_base": str(folder)})
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    with open(os.path.join(paths["purelib"], "borrowed.pth"), "w", encoding="utf-8") as pth:
        pth.writelines(f"{path}\n" for path in sorted(borrowed))
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(python: Path, *what: str | Path, cwd: Path) -> None:
    # --ignore-installed: pip sees the borrowed environment's webnn-wgpu and must leave it alone.
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, *what, cwd=cwd)


def templates(repository: Path) -> set[str]:
    """Every file under shaders/, by its path from there."""
    root = repository / "shaders"
    found = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert found, "no templates under shaders/"
    return found


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel made from the source distribution, so that both must hold the templates."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, repository, cwd=folder)
    assert len(list(folder.glob("webnn_wgpu-*.tar.gz"))) == 1
    (built,) = folder.glob("webnn_wgpu-*.whl")
    return built


def test_wheel_holds_every_template(wheel: Path, repository: Path) -> None:
    prefix = "webnn_wgpu/shaders/"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.removeprefix(prefix) for name in names if name.startswith(prefix)} == templates(repository)
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"webnn_wgpu", "_webnn_wgpu_pytest.py"}


# Prints which templates the package brings as Python, having rendered each both ways; then what is rendered of one that was
# edited after it was installed, and where an error in it is said to be.
COMPILED = """
import sys
from pathlib import Path

import jinja2

from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.kernels import template_code, templates
from webnn_wgpu.kernels.spec import KernelSpec

env, plain = templates.environment(), templates.make_environment(jinja2.FileSystemLoader)
for name in env.list_templates(extensions=["j2"]):
    source = env.loader.get_source(env, name)[0]
    module = template_code._module_of(name, source)
    if module is not None and env.get_template(name).root_render_func is module.root:
        print(name)
    outcomes = []
    for each in (env, plain):
        try:
            outcomes.append(each.get_template(name).render())
        except jinja2.TemplateError as error:
            outcomes.append((templates._place(error), str(error)))
    assert outcomes[0] == outcomes[1], (name, outcomes)
file = templates.shader_root() / "ops" / "softmax.wgsl.j2"
text = file.read_text()
file.write_text(text + "// edited\\n")
env.cache.clear()
assert env.get_template("ops/softmax.wgsl.j2").root_render_func.__globals__.get("made_of") is None
file.write_text(text)
env.cache.clear()
assert env.get_template("ops/softmax.wgsl.j2").root_render_func.__globals__["made_of"]
"""


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    python = make_environment(folder / "environment")
    install(python, wheel, cwd=folder)
    return python


def test_wheel_brings_templates_compiled(installed: Path, repository: Path, tmp_path: Path) -> None:
    found = run(installed, "-c", COMPILED, cwd=tmp_path).splitlines()
    assert set(found) == {name for name in templates(repository) if name.endswith(".j2")}


def test_wheel_holds_the_parts_of_pages(wheel: Path, repository: Path) -> None:
    parts = [path.relative_to(repository).as_posix() for path in repository.glob("webnn_wgpu/**/page/*")]
    assert len(parts) > 1
    with zipfile.ZipFile(wheel) as archive:
        assert set(parts) <= set(archive.namelist())


def test_wheel_is_marked_as_typed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert "webnn_wgpu/py.typed" in archive.namelist()


def test_no_python_among_the_templates(repository: Path) -> None:
    assert [name for name in templates(repository) if name.endswith(".py")] == []


def test_installed_wheel_runs_a_graph(installed: Path, tmp_path: Path) -> None:
    package, shaders = run(installed, "-c", PROGRAM, cwd=tmp_path).splitlines()
    folder = installed.parents[1]
    assert package.startswith(str(folder))
    assert shaders == str((folder / package).parent / "shaders")


def test_editable_install_reads_the_checkout(repository: Path, tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    python = make_environment(folder)
    install(python, "--editable", repository, cwd=tmp_path)
    package, shaders = run(python, "-c", PROGRAM, cwd=tmp_path).splitlines()
    assert package == str(repository / "webnn_wgpu" / "__init__.py")
    assert shaders == str(repository / "shaders")
    # Nothing of the package but the pointer to the checkout: a copy of a template would hide edits to it.
    assert list(folder.rglob("*.wgsl*")) == []
