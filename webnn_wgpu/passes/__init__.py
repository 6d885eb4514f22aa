"""Passes: functions from graph to graph, run in the order that `pipeline.py` lists."""

from .pipeline import PASSES, Pass, PassReport, run_passes

__all__ = ["PASSES", "Pass", "PassReport", "run_passes"]
