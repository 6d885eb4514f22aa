"""Run a program for LiteRT on a GPU: `WebnnDelegate` is the only change. Needs the extra `tflite` and `ai-edge-litert`."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from models import tflite_classifier

from webnn_wgpu.tflite import WebnnDelegate

delegate = WebnnDelegate(device_preference="gpu")
interpreter = Interpreter(tflite_classifier(), experimental_delegates=[delegate])
interpreter.allocate_tensors()
image, scores = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
interpreter.set_tensor(image["index"], np.full(image["shape"], [0, 0, 1], image["dtype"]))
interpreter.invoke()
print(interpreter.get_tensor(scores["index"]).argmax(), delegate.reports[0].summary)
