"""Spot a keyword in a sound with a TFLite model.

Needs the extra `tflite`. The model reads a spectrogram: 10 cepstral coefficients of 49 windows of 40 ms. Without arguments, the
sounds are a second of silence and a second of noise. Pass the path of the model and of a sound, a WAV file of one channel with
16,000 samples per second, or set `WEBNN_WGPU_SHARED` to the folder with the project's test data:

    python tflite_keyword_spotting.py kws_ds_cnn_int8.tflite yes.wav
"""

import sys
import wave

import numpy as np
from models import shared_files

import webnn_wgpu as wn

LABELS = ("down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes", "silence", "unknown")
RATE, WINDOW, STRIDE, FRAMES, POINTS, BANDS, COEFFICIENTS = 16_000, 640, 320, 49, 1024, 40, 10


def samples(path):
    """Return the first second of a sound, as numbers from -1 to 1."""
    with wave.open(path) as sound:
        if (sound.getnchannels(), sound.getframerate(), sound.getsampwidth()) != (1, RATE, 2):
            raise SystemExit(f"{path} must have one channel, {RATE} samples per second and 16 bits")
        data = np.frombuffer(sound.readframes(RATE), "<i2")
    return np.pad(data, (0, RATE - len(data))) / 32768


def coefficients(sound):
    """Return the mel-frequency cepstral coefficients of each window."""
    frames = np.stack([sound[i * STRIDE : i * STRIDE + WINDOW] for i in range(FRAMES)])
    spectrum = np.abs(np.fft.rfft(frames * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)), POINTS))

    def mel(frequency):
        return 1127 * np.log1p(frequency / 700)

    places = mel(np.fft.rfftfreq(POINTS, 1 / RATE))[:, None]
    edges = np.linspace(mel(20.0), mel(4000.0), BANDS + 2)
    rising, falling = ((places - edges[:-2]) / (edges[1:-1] - edges[:-2]), (edges[2:] - places) / (edges[2:] - edges[1:-1]))
    bands = np.log(spectrum @ np.clip(np.minimum(rising, falling), 0, None) + 1e-6)
    k = np.arange(COEFFICIENTS)
    return bands @ np.cos(np.pi / BANDS * (np.arange(BANDS)[:, None] + 0.5) * k) * np.sqrt(2 / BANDS)


path = sys.argv[1] if len(sys.argv) > 2 else shared_files("kws_ds_cnn_int8.tflite")[0]
noise = np.random.default_rng(0).normal(0, 0.1, RATE)
sounds = {sys.argv[2]: samples(sys.argv[2])} if len(sys.argv) > 2 else {"silence": np.zeros(RATE), "noise": noise}
with wn.load(path) as model:
    main = model.file.subgraphs[0]
    quantization = main.tensors[main.inputs[0]].quantization
    for name, sound in sounds.items():
        steps = np.rint(coefficients(sound) / quantization.scale) + quantization.zero_point
        (scores,) = model.run({model.inputs[0].name: np.clip(steps, -128, 127).astype(np.int8)[None, :, :, None]}).values()
        shares = (scores[0].astype(np.float32) + 128) / 256
        print(f"{name}: {LABELS[shares.argmax()]} ({shares.max():.2f})")
