"""Rules of the operators that slide windows over images, of quantization, and of recurrent networks."""

from __future__ import annotations

from .calls import ABSENT, BASES, POOLS, t
from .rules import LARGEST, breaks

CONVOLUTIONS = ("conv2d", "convTranspose2d")
WINDOWS = (*CONVOLUTIONS, *POOLS)

PAIRS = ([], [1], [1, 1, 1])
"""Lists that are not of two items."""

breaks("len(windowDimensions)==2", POOLS, *[{"window_dimensions": n} for n in PAIRS])
breaks("window items > 0", POOLS, {"window_dimensions": [0, 2]}, {"window_dimensions": [2, 0]})
breaks("len(padding)==4", WINDOWS, *[{"padding": [1] * n} for n in (0, 1, 2, 3, 5, 8)])
for _name, _ops in (("strides", WINDOWS), ("dilations", POOLS)):
    breaks(f"len({_name})==2 and all > 0", _ops, *[{_name: n} for n in (*PAIRS, [0, 1], [1, 0], [0, 0])])
breaks("len(dilations)==2", CONVOLUTIONS, *[{"dilations": n} for n in PAIRS])
breaks("all dilations > 0", CONVOLUTIONS, {"dilations": [0, 1]}, {"dilations": [1, 0]})
breaks("len(outputSizes)==2 when given", POOLS, *[{"output_sizes": n} for n in ([], [3], [3, 3, 3])])
# The computed sizes are 3.5: (3, 3) or (4, 4).
breaks(
    "outputSizes is (floor,floor) or (ceil,ceil) of the computed sizes",
    POOLS,
    *[{"output_sizes": n} for n in ([3, 4], [4, 3], [2, 2], [5, 5], [0, 0], [2**32 - 1, 3])],
)
breaks(
    "output H,W are valid dimensions",
    POOLS,
    {"window_dimensions": [8, 2]},
    {"window_dimensions": [2, 100]},
    {"dilations": [8, 1]},
    {"padding": [LARGEST, LARGEST, 0, 0], "strides": [1, 1]},
)

breaks("groups > 0", CONVOLUTIONS, {"groups": 0})
breaks("Cin % groups == 0", "conv2d", {"filter": t("float32[6, 1, 3, 3]"), "groups": 3})
breaks(
    "Cin // groups == filter input channels",
    "conv2d",
    {"filter": t("float32[6, 3, 3, 3]")},
    {"filter": t("float32[6, 4, 3, 3]")},
    {"groups": 1},
    {"filter_layout": "ohwi"},
    {"input_layout": "nhwc"},
)
breaks("Cout % groups == 0", "conv2d", {"filter": t("float32[5, 2, 3, 3]"), "bias": t("float32[5]")})
breaks(
    "bias, if given, has shape [Cout] and the input data type",
    "conv2d",
    {"bias": t("float32[5]")},
    {"bias": t("float32[1]")},
    {"bias": t("float16[6]")},
)
breaks(
    "bias, if given, has shape [Cout] and the input data type",
    "convTranspose2d",
    {"bias": t("float32[4]")},
    {"bias": t("float32[1]")},
    {"bias": t("float16[3]")},
)
breaks(
    "outH and outW are valid dimensions (1..2**31-1)",
    "conv2d",
    {"filter": t("float32[6, 2, 10, 3]")},
    {"dilations": [1, 5]},
    {"padding": [LARGEST, LARGEST, 0, 0], "strides": [1, 1]},
)
breaks("len(outputPadding)==2", "convTranspose2d", *[{"output_padding": n} for n in ([], [0], [0, 0, 0])])
breaks("outputSizes, if given, has length 2", "convTranspose2d", *[{"output_sizes": n} for n in ([], [9], [9, 9, 9])])
breaks(
    "without outputSizes: outputPadding[i] < strides[i]",
    "convTranspose2d",
    *[{"output_padding": n} for n in ([2, 0], [0, 2], [5, 5])],
)
breaks(
    "input channels == filter input channels",
    "convTranspose2d",
    {"filter": t("float32[3, 3, 3, 3]")},
    {"input": t("float32[1, 5, 5, 5]")},
    {"input_layout": "nhwc"},
)
# No groups divide the channels and still exceed it: a filter of so many elements cannot be made.
breaks("Cout = filter_out*groups is a valid dimension", "convTranspose2d", {"groups": 2**31, "bias": ABSENT})
breaks(
    "outputSizes[i] in [calc_i, calc_i + strides[i])",
    "convTranspose2d",
    # 9 or 10.
    *[{"output_sizes": n} for n in ([8, 9], [9, 8], [11, 9], [9, 11], [0, 9], [2**32 - 1, 9])],
)
breaks(
    "outH and outW are valid dimensions",
    "convTranspose2d",
    {"padding": [8, 8, 0, 0]},
    {"padding": [0, 0, 10, 10]},
    {"strides": [LARGEST, 2], "output_padding": [0, 0]},
)

breaks(
    "len(scales)==2 and all > 0",
    "resample2d",
    *[{"scales": n} for n in ([], [2.0], [2.0, 2.0, 2.0], [0.0, 2.0], [2.0, -1.0], [-0.0, 1.0])],
    {"scales": [0.0, 1.0], "sizes": [4, 4]},
)
breaks(
    "len(sizes)==2 and all > 0 when given",
    "resample2d",
    *[{"sizes": n} for n in ([], [2], [2, 2, 2], [0, 2], [2, 0])],
)
# The draft allows more: what neither allows.
breaks("axes in {[0,1],[1,2],[2,3]}", "resample2d", {"axes": [3, 4]}, {"axes": [1, 1]}, {"axes": [2]})
breaks(
    "axes has two distinct items in [0,4)",
    "resample2d",
    *[{"axes": n} for n in ([], [2], [1, 2, 3], [2, 2], [2, 4], [2**32 - 1, 0])],
)
breaks(
    "resulting sizes are valid dimensions (> 0)",
    "resample2d",
    {"scales": [0.1, 1.0]},
    {"scales": [1.0, 0.2]},
    {"scales": [1e9, 1.0]},
    {"sizes": [2**31, 1]},
)

_QUANTIZERS = "quantizeLinear dequantizeLinear"
breaks("scale.shape == zeroPoint.shape", _QUANTIZERS, {"scale": t("float32[4, 3]")}, {"zero_point": t("uint8[2, 6]")})
breaks(
    "for every d: input.shape[d] % scale.shape[d] == 0",
    _QUANTIZERS,
    {"scale": t("float32[3, 3]"), "zero_point": t("uint8[3, 3]")},
    {"scale": t("float32[2, 4]"), "zero_point": t("uint8[2, 4]")},
    {"scale": t("float32[8, 6]"), "zero_point": t("uint8[8, 6]")},
)

# recurrent networks -----------------------------------------------------------------------------------------------------

SEQUENCES, CELLS = "gru lstm", "gruCell lstmCell"

for _op in SEQUENCES.split():
    _weights = ("input", "weight", "recurrent_weight")
    breaks(
        "rank(input)==rank(weight)==rank(recurrentWeight)==3",
        _op,
        *[{n: BASES[_op][n].ranked(r)} for n in _weights for r in (2, 4)],
    )
breaks("input.shape[0]==steps", SEQUENCES, {"steps": 1}, {"steps": 3}, {"input": t("float32[3, 4, 5]")})
breaks("steps != 0", "lstm", {"steps": 0})
breaks("6*hiddenSize is a valid dimension", "gru gruCell", {"hidden_size": 2**29}, {"hidden_size": 2**32 - 1})
breaks("8*hiddenSize is a valid dimension", "lstm lstmCell", {"hidden_size": 2**28}, {"hidden_size": 2**32 - 1})
breaks(
    "weight.shape == [numDirections, 3*hiddenSize, inputSize]",
    "gru",
    *[{"weight": t(s)} for s in ("float32[2, 9, 5]", "float32[1, 8, 5]", "float32[1, 9, 4]")],
)
breaks(
    "recurrentWeight.shape == [numDirections, 3*hiddenSize, hiddenSize]",
    "gru",
    *[{"recurrent_weight": t(s)} for s in ("float32[2, 9, 3]", "float32[1, 12, 3]", "float32[1, 9, 4]")],
)
for _name in ("bias", "recurrent_bias"):
    _wrong = [{_name: t("float32[2, 9]")}, {_name: t("float32[1, 8]")}]
    breaks("bias/recurrentBias shape == [numDirections, 3*hiddenSize]", "gru", *_wrong)
    breaks("bias.shape[1]==3*hiddenSize and recurrentBias.shape[1]==3*hiddenSize", "gru", _wrong[1])
    breaks("bias/recurrentBias shape == [3*hiddenSize]", "gruCell", {_name: t("float32[8]")}, {_name: t("float32[12]")})
    breaks(
        "bias, recurrentBias shape == [numDirections, 4*hiddenSize]",
        "lstm",
        {_name: t("float32[2, 12]")},
        {_name: t("float32[1, 9]")},
    )
    breaks("bias, recurrentBias shape == [4*hiddenSize]", "lstmCell", {_name: t("float32[9]")}, {_name: t("float32[1]")})
_states = ("float32[2, 4, 3]", "float32[1, 3, 3]", "float32[1, 4, 4]")
breaks(
    "initialHiddenState.shape == [numDirections, batch, hiddenSize]", "gru", *[{"initial_hidden_state": t(s)} for s in _states]
)
breaks(
    "initial states shape == [numDirections, batch, hiddenSize]",
    "lstm",
    *[{n: t(s)} for n in ("initial_hidden_state", "initial_cell_state") for s in _states],
)
breaks(
    "len(activations)==2",
    "gru gruCell",
    *[{"activations": ["tanh"] * n} for n in (0, 1, 3)],
)
breaks(
    "len(activations)==3",
    "lstm lstmCell",
    *[{"activations": ["tanh"] * n} for n in (0, 2, 4)],
)
breaks(
    "weight.shape and recurrentWeight.shape as listed",
    "lstm",
    *[{"weight": t(s)} for s in ("float32[2, 12, 5]", "float32[1, 9, 5]", "float32[1, 12, 4]")],
    *[{"recurrent_weight": t(s)} for s in ("float32[2, 12, 3]", "float32[1, 9, 3]", "float32[1, 12, 4]")],
    {"direction": "both"},
)
breaks(
    "peepholeWeight.shape == [numDirections, 3*hiddenSize]",
    "lstm",
    {"peephole_weight": t("float32[2, 9]")},
    {"peephole_weight": t("float32[1, 12]")},
)
breaks(
    "peepholeWeight.shape == [3*hiddenSize]",
    "lstmCell",
    {"peephole_weight": t("float32[12]")},
    {"peephole_weight": t("float32[3]")},
)
for _op in CELLS.split():
    _matrices = [n for n in ("input", "weight", "recurrent_weight", "hidden_state", "cell_state") if n in BASES[_op]]
    breaks(
        f"all {'four' if _op == 'gruCell' else 'five'} tensor operands have rank 2",
        _op,
        *[{n: BASES[_op][n].ranked(r)} for n in _matrices for r in (0, 1, 3)],
    )
_weight = [{"weight": t("float32[8, 5]")}, {"weight": t("float32[12, 5]")}]
_recurrent = [{"recurrent_weight": t("float32[8, 3]")}, {"recurrent_weight": t("float32[12, 3]")}]
breaks("weight.shape[0]==3*hiddenSize and recurrentWeight.shape[0]==3*hiddenSize", "gruCell", *_weight, *_recurrent)
breaks("weight.shape==[3*hiddenSize,inputSize]", "gruCell", *_weight, {"weight": t("float32[9, 4]")})
breaks("recurrentWeight.shape==[3*hiddenSize,hiddenSize]", "gruCell", *_recurrent, {"recurrent_weight": t("float32[9, 4]")})
breaks(
    "hiddenState.shape==[batch,hiddenSize]",
    "gruCell",
    {"hidden_state": t("float32[3, 3]")},
    {"hidden_state": t("float32[4, 4]")},
)
breaks(
    "weight.shape==[4*hiddenSize,inputSize], recurrentWeight.shape==[4*hiddenSize,hiddenSize], "
    "hiddenState/cellState.shape==[batch,hiddenSize]",
    "lstmCell",
    {"weight": t("float32[9, 5]")},
    {"weight": t("float32[12, 4]")},
    {"recurrent_weight": t("float32[9, 3]")},
    {"recurrent_weight": t("float32[12, 4]")},
    *[{n: t(s)} for n in ("hidden_state", "cell_state") for s in ("float32[3, 3]", "float32[4, 4]")],
)
