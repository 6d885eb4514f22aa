"""The tools of TFLite, with their flags and the lines that they print."""

from .benchmark_model import benchmark_model
from .evaluate import evaluate
from .inference_diff import inference_diff
from .label_image import label_image

__all__ = ["benchmark_model", "evaluate", "inference_diff", "label_image"]
