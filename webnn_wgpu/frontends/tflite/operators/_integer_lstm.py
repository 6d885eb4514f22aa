"""LSTMs of int8 activations and weights, in integers as TFLite's kernels compute them.

Sums of products have 32 bits, gates and cells 16 bits. The arguments of gates have 12 fraction bits, their results 15.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from webnn_wgpu import MLOperand

from ...common.held import Array
from ..call import RANGES, TfliteCall
from ..contents import Quantization
from ..tensors import TfliteTensor
from ._fixed_point import ONE, divided, limited, logistic_table, rescaled, tanh_table
from ._integer_normalization import Normalization, normalized
from ._lstm_inputs import LstmInputs
from ._sums import centered, integer_sums, magnitude

CELL_GATE, OUTPUT_GATE = 2, 3
PEEPHOLES = {0: 0, 1: 1, 3: 2}
"""The positions of the peepholes of gates among them. The cell gate has none."""
LOGISTIC = 1 << 16
"""The place of sigmoid of 0 in the tables."""
GATE_BITS = 3
"""The bits of the whole part of the arguments of gates."""
GATE_SCALE = np.float32(2.0 ** (GATE_BITS - ONE))
WIDTH = 64
"""Gates and states have a multiple of this number of columns, the last ones for no unit, whose weights are 0.

So the gates of one row are parts of a buffer that kernels can bind.
"""
INTERMEDIATES = 5
"""The intermediate tensors of this kernel: the sums of the gates if these are normalized, and the hidden state."""


def is_integer_lstm(call: TfliteCall, at: LstmInputs) -> bool:
    """Return whether an LSTM is computed in integers: activations and weights of 8 bits, cells of 16."""
    present = [i for i in (*range(at.weights, at.weights + 8), at.projection) if call.has(i)]
    vectors = [i for i in range(at.peepholes, at.peepholes + 3) if call.has(i)]
    biases = [i for i in (*range(at.biases, at.biases + 4), at.projection + 1) if call.has(i)]
    if at.auxiliary >= 0 or call.activation != "TANH" or len(call.node.record.intermediates) != INTERMEDIATES:
        return False
    if at.normalizes(call):
        gates = at.gates(call)
        if not all(call.has(at.biases + g) and call.has(at.normalization + g) for g in gates):
            return False
        if not all(_is_whole(_intermediate(call, g)) for g in gates):
            return False
        vectors += [at.normalization + g for g in gates]
    states = [call.tensor(i) for i in (0, at.hidden)]
    cell, hidden = call.tensor(at.cell), _hidden_quantization(call)
    return (
        all(t.dtype.name == "int8" and _is_whole(t.quantization) for t in states)
        and all(_is_symmetric(call.tensor(i), "int8") for i in present)
        and all(_is_symmetric(call.tensor(i), "int16") for i in vectors)
        and all(call.tensor(i).dtype.name == "int32" and call.tensor(i).array is not None for i in biases)
        and _is_symmetric(cell, "int16", constant=False)
        and 0 <= _cell_bits(cell) <= 6
        and _is_whole(hidden)
    )


def _is_whole(quantization: Quantization | None) -> bool:
    return quantization is not None and quantization.is_whole and 0 < quantization.scale < np.inf


def _is_symmetric(tensor: TfliteTensor, name: str, constant: bool = True) -> bool:
    known = tensor.array is not None or not constant
    return known and tensor.dtype.name == name and _is_whole(tensor.quantization) and not _of(tensor).zero_points.any()


def _of(tensor: TfliteTensor) -> Quantization:
    assert tensor.quantization is not None
    return tensor.quantization


def _scale(tensor: TfliteTensor) -> np.float32:
    return np.float32(_of(tensor).scale)


def _cell_bits(cell: TfliteTensor) -> int:
    """Return the bits of the whole part of cells. It is -1 if their scale is no power of 2."""
    fraction, exponent = np.frexp(_of(cell).scale)
    return ONE + int(exponent) - 1 if fraction == 0.5 else -1


def _hidden_quantization(call: TfliteCall) -> Quantization | None:
    return _intermediate(call, INTERMEDIATES - 1)


def _intermediate(call: TfliteCall, index: int) -> Quantization | None:
    number = call.node.record.intermediates[index]
    return call.module.file.subgraphs[call.node.subgraph].tensors[number].quantization if number >= 0 else None


def _of_gate(call: TfliteCall, gate: int) -> Quantization:
    found = _intermediate(call, gate)
    assert found is not None
    return found


@cache
def _tables(bits: int) -> Array:
    """Return the table of tanh for arguments with so many bits of a whole part, and for gates that of sigmoid within it.

    Negative places count from the end. The nodes of a model share the arrays.
    """
    negative, positive = np.split(tanh_table(bits), 2)
    return np.concatenate([positive, logistic_table(), negative] if bits == GATE_BITS else [positive, negative])


@dataclass(frozen=True, kw_only=True)
class _Matrix:
    """Constant weights of gates side by side, [terms, columns], each with a multiple of `WIDTH` columns.

    Attributes:
        call: the node.
        values: the weights as float32, and the number of bits of their magnitudes.
        most: the maximum sum of magnitudes for a column.
        scales: the scale of the products for each column, in steps of the results.
        bias: the bias of each column.
    """

    call: TfliteCall
    values: tuple[MLOperand, int]
    most: int | None
    scales: Array
    bias: MLOperand | None

    @classmethod
    def of(
        cls,
        call: TfliteCall,
        first: int,
        bias: int,
        gates: Sequence[int],
        factor: np.float32,
        steps: Sequence[np.float32],
        wide: bool = True,
    ) -> _Matrix:
        """Return a matrix of weights [outputs, terms].

        Args:
            call: the node.
            first: the position of the weights of the first gate.
            bias: the position of its bias, -1 without biases.
            gates: the gates.
            factor: the scale of the factors.
            steps: the scales of the results for each gate.
            wide: whether the factors have a multiple of `WIDTH` columns.
        """
        weights = [call.tensor(first + g) for g in gates]
        biases = [call.tensor(bias + g) for g in gates if bias >= 0 and call.has(bias + g)]
        shape = weights[0].shape
        if len(shape) != 2 or any(t.shape != shape for t in weights) or any(t.shape != shape[:1] for t in biases):
            shapes = ", ".join(str(list(t.shape)) for t in (*weights, *biases))
            call.fail(f"weights and biases have the shapes {shapes}; allowed are equal matrices [n, m] and biases [n]")
        rest, terms = -shape[0] % WIDTH, -shape[1] % WIDTH if wide else 0
        joined = np.concatenate([np.pad(t.array, ((0, rest), (0, terms))) for t in weights if t.array is not None])
        whole = Quantization(scales=np.ones(1, np.float32), zero_points=np.zeros(1, np.int64))
        turned = TfliteTensor.known(np.ascontiguousarray(joined.T), whole)
        with np.errstate(all="ignore"):
            scales = [np.full(shape[0] + rest, _scale(t) * factor / step) for t, step in zip(weights, steps, strict=True)]
        added = [np.pad(t.array, (0, rest)) for t in biases if t.array is not None]
        return cls(
            call=call,
            values=centered(call, turned),
            most=magnitude(turned, (0,)),
            scales=np.concatenate(scales),
            bias=call.constant(np.concatenate(added), "int32") if added else None,
        )

    def products(self, rows: MLOperand, quantization: Quantization) -> MLOperand:
        """Return the rescaled sums of int8 rows times the weights, plus the bias."""
        call, terms = self.call, int(rows.shape[1])
        like = TfliteTensor(shape=tuple(rows.shape), dtype=np.dtype(np.int8), quantization=quantization)
        sums = integer_sums(call, call.build.matmul, centered(call, like, rows), self.values, terms, self.most)
        return rescaled(call, sums if self.bias is None else call.build.add(sums, self.bias), self.scales)


class IntegerLstm:
    """An LSTM in integers.

    Args:
        call: the node, for which `is_integer_lstm` holds.
        at: the positions of its inputs.
    """

    def __init__(self, call: TfliteCall, at: LstmInputs) -> None:
        self.call, self.at = call, at
        self.gates = at.gates(call)
        self.cell_bits = _cell_bits(call.tensor(at.cell))
        found = _hidden_quantization(call)
        assert found is not None
        self.hidden = found
        self.tables = call.stored(_tables(GATE_BITS))
        self.cell_table = call.stored(_tables(self.cell_bits))
        state = _scale(call.tensor(at.hidden))
        self.normalizations = {g: self._normalization(g) for g in self.gates} if at.normalizes(call) else {}
        # The sums of gates that are normalized have their own scales, and the bias comes behind the normalization.
        self.steps = {g: np.float32(_of_gate(call, g).scale) if self.normalizations else GATE_SCALE for g in self.gates}
        steps, bias = list(self.steps.values()), -1 if self.normalizations else at.biases
        self.weights = _Matrix.of(call, at.weights, bias, self.gates, _scale(call.tensor(0)), steps, wide=False)
        self.recurrent = _Matrix.of(call, at.recurrent, -1, self.gates, state, steps)
        self.projection: _Matrix | None = None
        if call.has(at.projection):
            self.projection = _Matrix.of(call, at.projection, at.projection + 1, [0], np.float32(found.scale), [state])

    def _normalization(self, gate: int) -> Normalization:
        call, shape = self.call, tuple(self.call.shape(self.at.cell)[-1:])
        coefficients, bias = (call.tensor(i + gate) for i in (self.at.normalization, self.at.biases))
        if coefficients.shape != shape or bias.shape != shape:
            shapes = f"{list(coefficients.shape)} and {list(bias.shape)}"
            call.fail(f"the coefficients and the bias of a gate have the shapes {shapes}; allowed are vectors {list(shape)}")
        assert coefficients.array is not None
        assert bias.array is not None
        return Normalization(coefficients=coefficients.array, scale=_scale(coefficients), bias=bias.array)

    def run(self, x: MLOperand) -> MLOperand:
        """Return the hidden states [steps, batch, outputs] of int8 inputs [steps, batch, inputs], and update the states."""
        call, b, at = self.call, self.call.build, self.at
        steps, batch = int(x.shape[0]), int(x.shape[1])
        flat = call.reshape(x, [steps * batch, int(x.shape[2])])
        sums = limited(call, self.weights.products(flat, _of(call.tensor(0))))
        parts = b.split(sums, [batch] * steps, axis=0) if steps > 1 else [sums]
        outputs, units = (call.shape(i)[-1] for i in (at.hidden, at.cell))
        hidden, cell = self._widened(at.hidden, [batch, outputs]), self._widened(at.cell, [batch, units])
        found: list[MLOperand] = []
        for part in parts:
            hidden, cell = self._step(part, hidden, cell)
            found.append(hidden)
        sequence = b.concat(found, 0) if steps > 1 else hidden
        call.update(at.hidden, call.reshape(b.slice(hidden, [0, 0], [batch, outputs]), call.shape(at.hidden)))
        call.update(at.cell, call.reshape(b.slice(cell, [0, 0], [batch, units]), call.shape(at.cell)))
        return call.reshape(b.slice(sequence, [0, 0], [steps * batch, outputs]), [steps, batch, outputs])

    def _widened(self, index: int, shape: Sequence[int]) -> MLOperand:
        """Return a state [batch, columns] with further columns of 0."""
        state, rest = self.call.reshape(self.call.operand(index), shape), -shape[1] % WIDTH
        return self.call.build.pad(state, [0, 0], [0, rest]) if rest else state

    def _step(self, sums: MLOperand, hidden: MLOperand, cell: MLOperand) -> tuple[MLOperand, MLOperand]:
        """Return the next hidden state and cell state."""
        call, b = self.call, self.call.build
        state = _of(call.tensor(self.at.hidden))
        sums = limited(call, b.add(sums, self.recurrent.products(hidden, state)))
        output: MLOperand | None = None
        if call.has(self.at.peepholes + 2):
            width = int(cell.shape[1])
            sums, output = b.split(sums, [int(sums.shape[1]) - width, width], axis=1)
            opened = self._opened(self._peeping(sums, self.gates[:-1], cell), self.gates[:-1])
        else:
            opened = self._opened(sums, self.gates)
        results = dict(zip(self.gates, opened, strict=False))
        forget = results[1]
        enters = results[0] if 0 in results else b.sub(call.constant((1 << ONE) - 1, "int32"), forget)
        kept = divided(call, b.mul(forget, cell), ONE)
        new = divided(call, b.mul(enters, results[CELL_GATE]), ONE + self.cell_bits)
        cell = self._clipped(limited(call, b.add(kept, new)), "CellClip", self.at.cell)
        if output is not None:
            results[OUTPUT_GATE] = self._opened(self._peeping(output, [OUTPUT_GATE], cell), [OUTPUT_GATE])[0]
        return self._hidden(b.mul(results[OUTPUT_GATE], b.gather(self.cell_table, cell))), cell

    def _opened(self, sums: MLOperand, gates: Sequence[int]) -> list[MLOperand]:
        """Return the results of gates whose arguments are side by side."""
        b, width = self.call.build, int(sums.shape[1]) // len(gates)
        if self.normalizations:
            sums = normalized(self.call, sums, [self.normalizations[g] for g in gates])
        places = np.repeat([0 if g == CELL_GATE else LOGISTIC for g in gates], width)
        found = b.gather(self.tables, b.add(sums, self.call.constant(places, "int32")) if places.any() else sums)
        return self._parts(found, len(gates))

    def _parts(self, joined: MLOperand, count: int) -> list[MLOperand]:
        return self.call.build.split(joined, count, axis=1) if count > 1 else [joined]

    def _peeping(self, sums: MLOperand, gates: Sequence[int], cell: MLOperand) -> MLOperand:
        """Return the arguments of gates that see the cells, side by side. Those of the cell gate stay as they are."""
        call, b, (batch, width) = self.call, self.call.build, map(int, cell.shape)
        weights = np.zeros((len(gates), width), np.int32)
        scales = np.ones((len(gates), width))
        for row, gate in enumerate(gates):
            if gate in PEEPHOLES:
                tensor = call.tensor(self.at.peepholes + PEEPHOLES[gate])
                assert tensor.array is not None
                units = call.shape(self.at.cell)[-1]
                if tensor.shape != (units,):
                    call.fail(f"its peepholes {list(tensor.shape)} must be a vector [{units}]")
                weights[row, :units] = tensor.array
                scales[row] = _of(call.tensor(self.at.cell)).scale * _of(tensor).scale / float(self.steps[gate])
        products = b.mul(call.reshape(cell, [batch, 1, width]), call.constant(weights, "int32"))
        products = rescaled(call, call.reshape(products, [batch, len(gates) * width]), scales.reshape(-1))
        return limited(call, b.add(sums, products))

    def _hidden(self, values: MLOperand) -> MLOperand:
        """Return the hidden state for products of 30 fraction bits."""
        call = self.call
        point = self.hidden.zero_point
        scale = 2.0**-15 / self.hidden.scale * 2.0**-15
        # Numbers for the projection have their zero point negated, there as in its sums.
        point = -point if self.projection is not None else point
        hidden = self._narrow(rescaled(call, values, [scale]), point)
        if self.projection is None:
            return hidden
        quantization = Quantization(scales=self.hidden.scales, zero_points=np.array([point]))
        state = _of(call.tensor(self.at.hidden)).zero_point
        projected = self._narrow(self.projection.products(hidden, quantization), state)
        return self._clipped(projected, "ProjClip", self.at.hidden)

    def _narrow(self, x: MLOperand, point: int) -> MLOperand:
        x = self.call.build.add(x, self.call.constant(point, "int32")) if point else x
        return self.call.cast(limited(self.call, x, "int8"), "int8")

    def _clipped(self, x: MLOperand, option: str, index: int) -> MLOperand:
        """Return integers within the limits that an option states as a number. 0 stands for none."""
        tensor = self.call.tensor(index)
        with np.errstate(all="ignore"):
            steps = float(np.float32(self.call.option(option, 0.0)) / _scale(tensor))
        limit = int(min(steps, RANGES[tensor.dtype.name][1])) if steps > 0 else 0
        return self.call.build.clamp(x, min_value=-limit, max_value=limit) if limit else x
