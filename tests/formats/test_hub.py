"""`Hub`, with a stand-in for the package that downloads."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import webnn_wgpu as wn
from tests.formats.test_reading import MLP, WEIGHTS, safetensors

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    remote = tmp_path / "remote"
    remote.mkdir()
    (remote / "model.webnn").write_text(MLP)
    (remote / "model.safetensors").write_bytes(safetensors({"encoder.dense/w": WEIGHTS}))
    (remote / "README.md").write_text("not taken")
    done: list[str] = []

    def download(model: str, name: str, force_download: bool) -> str:
        done.append(f"{model}/{name}")
        if model == "user/broken" and name != "model.webnn":
            raise OSError("connection lost")
        return str(remote / name)

    stand_in: Any = SimpleNamespace(
        list_repo_files=lambda _: [path.name for path in remote.iterdir()], hf_hub_download=download
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", stand_in)
    return done


def test_models_are_downloaded_once(downloads: list[str], tmp_path: Path) -> None:
    hub = wn.Hub(cache_dir=tmp_path / "cache")
    assert hub.list_cached_models() == []
    files = hub.download_model("user/mlp")
    folder = tmp_path / "cache" / "user--mlp"
    assert files == {"graph": str(folder / "model.webnn"), "weights": str(folder / "model.safetensors"), "manifest": None}
    assert downloads == ["user/mlp/model.webnn", "user/mlp/model.safetensors"]
    assert hub.download_model("user/mlp") == files
    assert len(downloads) == 2
    hub.download_model("user/mlp", force=True)
    assert len(downloads) == 4
    assert hub.list_cached_models() == ["user/mlp"]
    with wn.ml.create_context(backend="reference") as context:
        wn.MLGraph.load(files["graph"], files["manifest"], files["weights"], context=context, override_dims={"batch": 1})
    hub.clear_cache("user/mlp")
    assert hub.list_cached_models() == []


@pytest.mark.usefixtures("downloads")
def test_a_download_that_fails_leaves_nothing(tmp_path: Path) -> None:
    hub = wn.Hub(cache_dir=tmp_path / "cache")
    with pytest.raises(RuntimeError, match="user/broken cannot be downloaded: connection lost"):
        hub.download_model("user/broken")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("name", ["model", "a/b/c", "../x", "a/..", "/x", "a/", "a--b/c", "a/b\n", "a\\b/c"])
def test_names_that_leave_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    hub = wn.Hub(cache_dir=tmp_path)
    for method in (hub.download_model, hub.clear_cache):
        with pytest.raises(ValueError, match="a model's name must"):
            method(name)


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(wn.NotSupportedError, match=r"pip install 'webnn-wgpu\[hub\]'"):
        wn.Hub(cache_dir=tmp_path).download_model("user/mlp")
