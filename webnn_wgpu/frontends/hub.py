"""`Hub`: WebNN graphs from the Hugging Face hub, with pywebnn's methods."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from webnn_wgpu.api.optional import needed_by

if TYPE_CHECKING:
    from collections.abc import Sequence

GRAPH = "model.webnn"
PAIRS: Sequence[tuple[str, str | None]] = (("model.weights", "manifest.json"), ("model.safetensors", None))
"""Files of weights with their manifests; the first that a repository has is taken."""


class ModelFiles(TypedDict):
    """The files of a downloaded model.

    Attributes:
        graph: path of the `.webnn` file.
        weights: path of the file of weights; None for a graph without one.
        manifest: path of the manifest; None without one.
    """

    graph: str
    weights: str | None
    manifest: str | None


class Hub:
    """WebNN graphs from the Hugging Face hub, in a folder of their own. The extra `hub` brings the package for downloads.

    Args:
        cache_dir: the folder; by default `~/.cache/webnn`.

    Example:
        >>> wn.Hub("hub").list_cached_models()
        []
    """

    def __init__(self, cache_dir: str | os.PathLike[str] | None = None) -> None:
        self.cache_dir = Path("~/.cache/webnn").expanduser() if cache_dir is None else Path(cache_dir)

    def _folder(self, model_id: str) -> Path:
        """Return the folder of a model, whose name must be "user/model"."""
        parts = model_id.split("/")
        if len(parts) != 2 or not all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", part) for part in parts):
            raise ValueError(f"a model's name must be of the form 'user/model'; got {model_id!r}")
        if any("--" in part or ".." in part for part in parts):
            raise ValueError(f"a model's name must have no '--' and no '..'; got {model_id!r}")
        return self.cache_dir / "--".join(parts)

    def download_model(self, model_id: str, force: bool = False) -> ModelFiles:
        """Download a graph and its weights, unless the folder has them.

        `model.webnn` is taken, and `model.weights` with `manifest.json`, or `model.safetensors`.

        Args:
            model_id: name of the repository: "user/model".
            force: whether to download files that are there.

        Returns:
            The paths by "graph", "weights" and "manifest".

        Raises:
            ValueError: a name of another form.
            RuntimeError: the download failed.
            NotSupportedError: the extra `hub` is not installed.
        """
        folder = self._folder(model_id)
        if force or not (folder / GRAPH).is_file():
            self._download(model_id, folder, force)
        for weights, manifest in PAIRS:
            if (folder / weights).is_file():
                beside = None if manifest is None else str(folder / manifest)
                return {"graph": str(folder / GRAPH), "weights": str(folder / weights), "manifest": beside}
        return {"graph": str(folder / GRAPH), "weights": None, "manifest": None}

    def _download(self, model_id: str, folder: Path, force: bool) -> None:
        with needed_by("Hub", "hub"):
            huggingface_hub: Any = import_module("huggingface_hub")
        self.cache_dir.mkdir(parents=True, exist_ok=True)
        # Files are whole or not there: the folder gets its name when it has all of them.
        with tempfile.TemporaryDirectory(dir=self.cache_dir, prefix=".download-") as place:
            target = Path(place) / "model"
            target.mkdir()
            try:
                known: Any = set(huggingface_hub.list_repo_files(model_id))
                pair = next((p for p in PAIRS if all(name is None or name in known for name in p)), (None, None))
                for name in (GRAPH, *pair):
                    if name is not None:
                        path = huggingface_hub.hf_hub_download(model_id, name, force_download=force)
                        shutil.copyfile(path, target / name)
            except Exception as error:  # the package's errors share no base
                raise RuntimeError(f"{model_id} cannot be downloaded: {error}") from error
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(target, folder)

    def list_cached_models(self) -> list[str]:
        """Return the names of the models in the folder."""
        if not self.cache_dir.is_dir():
            return []
        folders = (path for path in self.cache_dir.iterdir() if (path / GRAPH).is_file() and "--" in path.name)
        return sorted(path.name.replace("--", "/", 1) for path in folders)

    def clear_cache(self, model_id: str | None = None) -> None:
        """Delete a model, or all models, from the folder. Other files stay.

        Args:
            model_id: the model as "user/model". None is all models.

        Raises:
            ValueError: a name of another form than "user/model".
        """
        for name in self.list_cached_models() if model_id is None else [model_id]:
            shutil.rmtree(self._folder(name), ignore_errors=True)
