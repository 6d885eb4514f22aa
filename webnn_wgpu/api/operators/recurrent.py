"""Recurrent networks and their cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ...ops import operator
from ..activation import MLActivation
from ..options import with_options
from ._base import OperatorMethods, require_operands
from ._cells import cell_by_operators, definition_form, listed_activations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..operand import MLOperand
    from ._cells import Activations
    from .dictionaries import MLGruCellOptions, MLGruOptions, MLLstmCellOptions, MLLstmOptions


class RecurrentOperators(OperatorMethods):
    """gru, gru_cell, lstm, lstm_cell.

    Sums and states are kept in float32 from the first step to the last; outputs are rounded once, when they are stored.
    """

    @with_options()
    def gru(
        self,
        input: MLOperand,
        weight: MLOperand,
        recurrent_weight: MLOperand,
        steps: int,
        hidden_size: int,
        options: MLGruOptions = {},
        *,
        bias: MLOperand | None = None,
        recurrent_bias: MLOperand | None = None,
        initial_hidden_state: MLOperand | None = None,
        reset_after: bool = True,
        return_sequence: bool = False,
        direction: Literal["forward", "backward", "both"] = "forward",
        layout: Literal["zrn", "rzn"] = "zrn",
        activations: Activations | None = None,
        label: str = "",
    ) -> list[MLOperand]:
        """Gated recurrent unit over all steps of a sequence, in one direction or in both.

        Args:
            input: float32 or float16 [steps, batch, inputs].
            weight: The same data type, as are all operands; [directions, 3 * hidden_size, inputs], with 2 directions for
                "both" and 1 otherwise. The gates lie in the order of `layout`.
            recurrent_weight: [directions, 3 * hidden_size, hidden_size].
            steps: The number of steps, which is the input's first dimension.
            hidden_size: The number of hidden units.
            options: The options below as one dictionary.
            bias: [directions, 3 * hidden_size]; 0 where absent.
            recurrent_bias: [directions, 3 * hidden_size]; 0 where absent.
            initial_hidden_state: [directions, batch, hidden_size]; 0 where absent.
            reset_after: Whether the reset gate is applied to the hidden state's product with its weights, rather than to
                the hidden state before it.
            return_sequence: Whether the hidden states of all steps are returned too.
            direction: "forward", "backward" (from the last step to the first) or "both" (direction 0 forward, 1 backward).
            layout: Order of the gates, "zrn" or "rzn": z updates, r resets, n is new.
            activations: Two, for z and r, and for n; sigmoid and tanh where absent.
            label: The operator's name in messages.

        Returns:
            A list of the hidden state after the last step that was made, [directions, batch, hidden_size], and with
            `return_sequence` that of every step, [steps, directions, batch, hidden_size]. There entry t belongs to step t of
            the input, in every direction.

        Raises:
            MLTypeError: Shapes that do not fit, other than two activations, softmax as an activation, an option that is not
                allowed, data types that differ or are not allowed, or an operand or activation of another builder.

        Numerics: States are kept in float32, also for float16; outputs are rounded once.

        Example:
            >>> weight = b.constant(np.ones((1, 12, 3), np.float32))
            >>> recurrent_weight = b.constant(np.ones((1, 12, 4), np.float32))
            >>> two_steps = b.reshape(x, [2, 1, 3])
            >>> [o.shape for o in b.gru(two_steps, weight, recurrent_weight, 2, 4, return_sequence=True)]
            [(1, 1, 4), (2, 1, 1, 4)]

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gru
        """
        operands = [input, weight, recurrent_weight, bias, recurrent_bias, initial_hidden_state]
        attrs = {
            "steps": steps,
            "hidden_size": hidden_size,
            "reset_after": reset_after,
            "return_sequence": return_sequence,
            "direction": direction,
            "layout": layout,
        }
        return self._recurrent("gru", operands, attrs, activations, label)

    @with_options()
    def gru_cell(
        self,
        input: MLOperand,
        weight: MLOperand,
        recurrent_weight: MLOperand,
        hidden_state: MLOperand,
        hidden_size: int,
        options: MLGruCellOptions = {},
        *,
        bias: MLOperand | None = None,
        recurrent_bias: MLOperand | None = None,
        reset_after: bool = True,
        layout: Literal["zrn", "rzn"] = "zrn",
        activations: Activations | None = None,
        label: str = "",
    ) -> MLOperand:
        """One step of a gated recurrent unit.

        Args:
            input: float32 or float16 [batch, inputs].
            weight: The same data type, as are all operands; [3 * hidden_size, inputs], the gates in the order of `layout`.
            recurrent_weight: [3 * hidden_size, hidden_size].
            hidden_state: The state before the step, [batch, hidden_size].
            hidden_size: The number of hidden units.
            options: The options below as one dictionary.
            bias: [3 * hidden_size]; 0 where absent.
            recurrent_bias: [3 * hidden_size]; 0 where absent.
            reset_after: Whether the reset gate is applied to the hidden state's product with its weights, rather than to
                the hidden state before it.
            layout: Order of the gates, "zrn" or "rzn": z updates, r resets, n is new.
            activations: Two, for z and r, and for n; sigmoid and tanh where absent.
            label: The operator's name in messages.

        Returns:
            The hidden state after the step, [batch, hidden_size].

        Raises:
            MLTypeError: Shapes that do not fit, other than two activations, an option that is not allowed, data types that
                differ or are not allowed, or an operand or activation of another builder.

        Numerics: Rounded once. With softmax, which is applied to a whole gate, every operator it is made of rounds.

        Example:
            >>> weight, recurrent_weight = (b.constant(np.ones((12, n), np.float32)) for n in (3, 4))
            >>> state = b.constant(np.zeros((2, 4), np.float32))
            >>> b.gru_cell(x, weight, recurrent_weight, state, 4, activations=["sigmoid", b.softsign()]).shape
            (2, 4)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-grucell
        """
        operands = [input, weight, recurrent_weight, hidden_state, bias, recurrent_bias]
        attrs = {"hidden_size": hidden_size, "reset_after": reset_after, "layout": layout}
        (output,) = self._recurrent("gruCell", operands, attrs, activations, label)
        return output

    @with_options()
    def lstm(
        self,
        input: MLOperand,
        weight: MLOperand,
        recurrent_weight: MLOperand,
        steps: int,
        hidden_size: int,
        options: MLLstmOptions = {},
        *,
        bias: MLOperand | None = None,
        recurrent_bias: MLOperand | None = None,
        peephole_weight: MLOperand | None = None,
        initial_hidden_state: MLOperand | None = None,
        initial_cell_state: MLOperand | None = None,
        return_sequence: bool = False,
        direction: Literal["forward", "backward", "both"] = "forward",
        layout: Literal["iofg", "ifgo"] = "iofg",
        activations: Activations | None = None,
        label: str = "",
    ) -> list[MLOperand]:
        """Long short-term memory over all steps of a sequence, in one direction or in both.

        Args:
            input: float32 or float16 [steps, batch, inputs].
            weight: The same data type, as are all operands; [directions, 4 * hidden_size, inputs], with 2 directions for
                "both" and 1 otherwise. The gates lie in the order of `layout`.
            recurrent_weight: [directions, 4 * hidden_size, hidden_size].
            steps: The number of steps, which is the input's first dimension.
            hidden_size: The number of hidden units.
            options: The options below as one dictionary.
            bias: [directions, 4 * hidden_size]; 0 where absent.
            recurrent_bias: [directions, 4 * hidden_size]; 0 where absent.
            peephole_weight: [directions, 3 * hidden_size], for the input, the output and the forget gate in this order
                whatever the layout; 0 where absent. All three look at the cell state before the step.
            initial_hidden_state: [directions, batch, hidden_size]; 0 where absent.
            initial_cell_state: [directions, batch, hidden_size]; 0 where absent.
            return_sequence: Whether the hidden states of all steps are returned too.
            direction: "forward", "backward" (from the last step to the first) or "both" (direction 0 forward, 1 backward).
            layout: Order of the gates, "iofg" or "ifgo": input, output, forget and cell gate.
            activations: Three, for the gates i, o and f, for the cell gate g, and for the new cell state; sigmoid, tanh and
                tanh where absent.
            label: The operator's name in messages.

        Returns:
            A list of the hidden state and the cell state after the last step that was made, [directions, batch,
            hidden_size], and with `return_sequence` the hidden state of every step, [steps, directions, batch, hidden_size].
            There entry t belongs to step t of the input, in every direction.

        Raises:
            MLTypeError: Shapes that do not fit, other than three activations, softmax as an activation, an option that is
                not allowed, data types that differ or are not allowed, or an operand or activation of another builder.

        Numerics: States are kept in float32, also for float16; outputs are rounded once.

        Example:
            >>> weight = b.constant(np.ones((2, 16, 3), np.float32))
            >>> recurrent_weight = b.constant(np.ones((2, 16, 4), np.float32))
            >>> two_steps = b.reshape(x, [2, 1, 3])
            >>> hidden, cell = b.lstm(two_steps, weight, recurrent_weight, 2, 4, direction="both")
            >>> hidden.shape, cell.shape
            ((2, 1, 4), (2, 1, 4))

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-lstm
        """
        operands = [
            input,
            weight,
            recurrent_weight,
            bias,
            recurrent_bias,
            peephole_weight,
            initial_hidden_state,
            initial_cell_state,
        ]
        attrs = {
            "steps": steps,
            "hidden_size": hidden_size,
            "return_sequence": return_sequence,
            "direction": direction,
            "layout": layout,
        }
        return self._recurrent("lstm", operands, attrs, activations, label)

    @with_options()
    def lstm_cell(
        self,
        input: MLOperand,
        weight: MLOperand,
        recurrent_weight: MLOperand,
        hidden_state: MLOperand,
        cell_state: MLOperand,
        hidden_size: int,
        options: MLLstmCellOptions = {},
        *,
        bias: MLOperand | None = None,
        recurrent_bias: MLOperand | None = None,
        peephole_weight: MLOperand | None = None,
        layout: Literal["iofg", "ifgo"] = "iofg",
        activations: Activations | None = None,
        label: str = "",
    ) -> list[MLOperand]:
        """One step of a long short-term memory.

        Args:
            input: float32 or float16 [batch, inputs].
            weight: The same data type, as are all operands; [4 * hidden_size, inputs], the gates in the order of `layout`.
            recurrent_weight: [4 * hidden_size, hidden_size].
            hidden_state: The hidden state before the step, [batch, hidden_size].
            cell_state: The cell state before the step, [batch, hidden_size].
            hidden_size: The number of hidden units.
            options: The options below as one dictionary.
            bias: [4 * hidden_size]; 0 where absent.
            recurrent_bias: [4 * hidden_size]; 0 where absent.
            peephole_weight: [3 * hidden_size], for the input, the output and the forget gate in this order whatever the
                layout; 0 where absent. All three look at the cell state before the step.
            layout: Order of the gates, "iofg" or "ifgo": input, output, forget and cell gate.
            activations: Three, for the gates i, o and f, for the cell gate g, and for the new cell state; sigmoid, tanh and
                tanh where absent.
            label: The operator's name in messages.

        Returns:
            A list of the hidden state and the cell state after the step, each [batch, hidden_size].

        Raises:
            MLTypeError: Shapes that do not fit, other than three activations, an option that is not allowed, data types that
                differ or are not allowed, or an operand or activation of another builder.

        Numerics: Rounded once. With softmax, which is applied to a whole gate, every operator it is made of rounds.

        Example:
            >>> weight, recurrent_weight = (b.constant(np.ones((16, n), np.float32)) for n in (3, 4))
            >>> state = b.constant(np.zeros((2, 4), np.float32))
            >>> [o.shape for o in b.lstm_cell(x, weight, recurrent_weight, state, state, 4, layout="ifgo")]
            [(2, 4), (2, 4)]

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-lstmcell
        """
        operands = [
            input,
            weight,
            recurrent_weight,
            hidden_state,
            cell_state,
            bias,
            recurrent_bias,
            peephole_weight,
        ]
        return self._recurrent("lstmCell", operands, {"hidden_size": hidden_size, "layout": layout}, activations, label)

    def _recurrent(
        self,
        name: str,
        operands: Sequence[MLOperand | None],
        options: Mapping[str, Any],
        activations: Activations | None,
        label: str,
    ) -> list[MLOperand]:
        """Add the operator, or where an activation is not element-wise the operators it is made of."""
        op = operator(name)
        require_operands(op, operands, label)
        given = listed_activations(self, op, activations, label)
        attrs = {**options, "activations": None if given is None else [definition_form(a) for a in given]}
        by_operators = any(isinstance(a, MLActivation) and a.kind == "softmax" for a in given or ())
        if given is None or not by_operators:
            return self._outputs(name, operands, attrs, label)
        self._require_own(op, operands, label)
        # Checked before anything is added: a call that fails adds nothing to the graph.
        _, canonical = op.check([None if o is None else o.type for o in operands], attrs, label)
        named = {declared.name: o for declared, o in zip(op.operands, operands, strict=True)}
        return cell_by_operators(self, name, named, canonical, given, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        gruCell = gru_cell
        lstmCell = lstm_cell
