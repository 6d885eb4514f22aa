"""Loading a model needs no sympy, and a program that does gets it whole."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import webnn_wgpu as wn
wn.load_onnx
assert "sympy.core" not in sys.modules, "sympy was loaded"
import onnx_ir
assert (onnx_ir.SymbolicDim("n") + 1).value == "n + 1"
import sympy
assert sympy.sqrt(16) == 4
print("done")
"""


def test_sympy_is_loaded_when_it_is_used():
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
