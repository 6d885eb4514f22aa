"""A run of onnxruntime's WebGPU provider that logs its shaders and dispatches: python logged_run.py MODEL INPUTS.npz PROFILE

Any Python that has onnxruntime-webgpu runs it: it imports nothing of this repository. The log goes to stderr. The profile names
the programs of one run in order, with the node of each.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import onnxruntime


def main() -> None:
    """Run the model of the command line once, logging."""
    model, inputs, profile = sys.argv[1:]
    onnxruntime.set_default_logger_severity(0)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 0
    options.enable_profiling = True
    options.profile_file_prefix = profile
    session = onnxruntime.InferenceSession(model, options, ["WebGpuExecutionProvider"])
    if "WebGpuExecutionProvider" not in session.get_providers():
        sys.exit("onnxruntime's WebGPU provider takes no adapter here")
    session.run(None, dict(np.load(inputs)))
    print(session.end_profiling(), flush=True)
    # Dawn crashes as it ends while verbose messages are logged.
    os._exit(0)


if __name__ == "__main__":
    main()
