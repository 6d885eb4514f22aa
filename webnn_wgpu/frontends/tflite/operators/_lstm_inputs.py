"""The positions of the inputs of TFLite's LSTMs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..call import TfliteCall


@dataclass(frozen=True, kw_only=True)
class LstmInputs:
    """The positions of an LSTM's inputs. Gates are in the order input, forget, cell, output.

    Attributes:
        weights: the first of four matrices for the input.
        recurrent: the first of four matrices for the hidden state.
        peepholes: the first of three vectors: input, forget, output.
        biases: the first of four biases.
        projection: a matrix, followed by its bias.
        hidden: the hidden state.
        cell: the cell state.
        normalization: the first of four vectors of coefficients, -1 without these inputs.
        auxiliary: the first of four matrices for the auxiliary input, -1 without these inputs.
    """

    weights: int
    recurrent: int
    peepholes: int
    biases: int
    projection: int
    hidden: int
    cell: int
    normalization: int = -1
    auxiliary: int = -1

    def gates(self, call: TfliteCall) -> list[int]:
        """Return the gates that a node has weights for. Coupled gates lack the first."""
        return [g for g in range(4) if g or call.has(self.weights)]

    def normalizes(self, call: TfliteCall) -> bool:
        """Return whether a node normalizes the arguments of its gates."""
        return self.normalization >= 0 and call.has(self.normalization + 1)


SINGLE = LstmInputs(weights=1, recurrent=5, peepholes=9, biases=12, projection=16, hidden=18, cell=19, normalization=20)
FORWARD = LstmInputs(weights=1, recurrent=5, peepholes=9, biases=12, projection=16, hidden=35, cell=36, auxiliary=40)
BACKWARD = LstmInputs(weights=18, recurrent=22, peepholes=26, biases=29, projection=33, hidden=37, cell=38, auxiliary=44)
