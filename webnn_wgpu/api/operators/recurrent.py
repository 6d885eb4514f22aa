"""Recurrent networks and their cells.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..options import with_options
from ._forms import OperatorForms

if TYPE_CHECKING:
    from ..operand import MLOperand
    from ._cells import Activations
    from .dictionaries import MLGruCellOptions, MLGruOptions, MLLstmCellOptions, MLLstmOptions


class RecurrentOperators(OperatorForms):
    """Recurrent networks and their cells.

    gru, gru_cell, lstm, lstm_cell. Sums and states are kept in float32 from the first step to the last. Outputs are rounded
    once, when they are stored.
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
            input: float32 or float16, with the shape [steps, batch, inputs].
            weight: The input's data type, as for all operands, with the shape [directions, 3 * hidden_size, inputs]. There are
                2 directions for "both" and 1 otherwise. The gates are in the order of `layout`.
            recurrent_weight: [directions, 3 * hidden_size, hidden_size].
            steps: The number of steps, which is the input's first dimension.
            hidden_size: The number of hidden units.
            options: The options that follow, as one dictionary.
            bias: The input's data type, with the shape [directions, 3 * hidden_size]. The default is 0.
            recurrent_bias: The input's data type, with the shape [directions, 3 * hidden_size]. The default is 0.
            initial_hidden_state: [directions, batch, hidden_size]. The default is 0.
            reset_after: Whether the reset gate is applied to the product of the hidden state with its weights, instead of to
                the hidden state before the product.
            return_sequence: Whether the hidden states of all steps are returned too.
            direction: "forward", "backward" (from the last step to the first) or "both" (direction 0 is forward, 1 backward).
            layout: Order of the gates, "zrn" or "rzn": z updates, r resets, n is new.
            activations: Two activations: for z and r, and for n. The default is sigmoid and tanh.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            A list of the hidden state after the last step in each direction, [directions, batch, hidden_size], and with
            `return_sequence` the hidden states of all steps, [steps, directions, batch, hidden_size]. There, entry t belongs to
            step t of the input in every direction.

        Raises:
            MLTypeError: Shapes do not fit. There are not two activations, or an activation is softmax. An option is not
                allowed, data types differ or are not allowed, or an operand or activation belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            States are kept in float32, also for float16. Outputs are rounded once.

        Example:
            >>> weight = b.constant(np.ones((1, 12, 3), np.float32))
            >>> recurrent_weight = b.constant(np.ones((1, 12, 4), np.float32))
            >>> two_steps = b.reshape(x, [2, 1, 3])
            >>> [o.shape for o in b.gru(two_steps, weight, recurrent_weight, 2, 4, return_sequence=True)]
            [(1, 1, 4), (2, 1, 1, 4)]

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gru
        """
        return self._recurrent(
            "gru",
            [input, weight, recurrent_weight, bias, recurrent_bias, initial_hidden_state],
            {
                "steps": steps,
                "hidden_size": hidden_size,
                "return_sequence": return_sequence,
                "direction": direction,
                "reset_after": reset_after,
                "layout": layout,
            },
            activations,
            label,
        )

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
            input: float32 or float16, with the shape [batch, inputs].
            weight: The input's data type, as for all operands, with the shape [3 * hidden_size, inputs]. The gates are in the
                order of `layout`.
            recurrent_weight: [3 * hidden_size, hidden_size].
            hidden_state: The state before the step, [batch, hidden_size].
            hidden_size: The number of hidden units.
            options: The options that follow, as one dictionary.
            bias: The input's data type, with the shape [3 * hidden_size]. The default is 0.
            recurrent_bias: The input's data type, with the shape [3 * hidden_size]. The default is 0.
            reset_after: Whether the reset gate is applied to the product of the hidden state with its weights, instead of to
                the hidden state before the product.
            layout: Order of the gates, "zrn" or "rzn": z updates, r resets, n is new.
            activations: Two activations: for z and r, and for n. The default is sigmoid and tanh.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            The hidden state after the step, [batch, hidden_size].

        Raises:
            MLTypeError: Shapes do not fit, there are not two activations, an option is not allowed, data types differ or are
                not allowed, or an operand or activation belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Outputs are rounded once. With softmax, which is applied to a whole gate, every operator of the cell rounds.

        Example:
            >>> weight, recurrent_weight = (b.constant(np.ones((12, n), np.float32)) for n in (3, 4))
            >>> state = b.constant(np.zeros((2, 4), np.float32))
            >>> b.gru_cell(x, weight, recurrent_weight, state, 4, activations=["sigmoid", b.softsign()]).shape
            (2, 4)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-grucell
        """
        return self._recurrent_cell(
            "gruCell",
            [input, weight, recurrent_weight, hidden_state, bias, recurrent_bias],
            {"hidden_size": hidden_size, "reset_after": reset_after, "layout": layout},
            activations,
            label,
        )

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
            input: float32 or float16, with the shape [steps, batch, inputs].
            weight: The input's data type, as for all operands, with the shape [directions, 4 * hidden_size, inputs]. There are
                2 directions for "both" and 1 otherwise. The gates are in the order of `layout`.
            recurrent_weight: [directions, 4 * hidden_size, hidden_size].
            steps: The number of steps, which is the input's first dimension.
            hidden_size: The number of hidden units.
            options: The options that follow, as one dictionary.
            bias: The input's data type, with the shape [directions, 4 * hidden_size]. The default is 0.
            recurrent_bias: The input's data type, with the shape [directions, 4 * hidden_size]. The default is 0.
            peephole_weight: [directions, 3 * hidden_size], for the input, the output and the forget gate, in this order for
                every layout. The default is 0. All three gates look at the cell state before the step.
            initial_hidden_state: [directions, batch, hidden_size]. The default is 0.
            initial_cell_state: [directions, batch, hidden_size]. The default is 0.
            return_sequence: Whether the hidden states of all steps are returned too.
            direction: "forward", "backward" (from the last step to the first) or "both" (direction 0 is forward, 1 backward).
            layout: Order of the gates, "iofg" or "ifgo": input, output, forget and cell gate.
            activations: Three activations: for the gates i, o and f, for the cell gate g, and for the new cell state. The
                default is sigmoid, tanh and tanh.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            A list of the hidden state and the cell state after the last step in each direction, [directions, batch,
            hidden_size], and with `return_sequence` the hidden states of all steps, [steps, directions, batch, hidden_size].
            There, entry t belongs to step t of the input in every direction.

        Raises:
            MLTypeError: Shapes do not fit. There are not three activations, or an activation is softmax. An option is not
                allowed, data types differ or are not allowed, or an operand or activation belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            States are kept in float32, also for float16. Outputs are rounded once.

        Example:
            >>> weight = b.constant(np.ones((2, 16, 3), np.float32))
            >>> recurrent_weight = b.constant(np.ones((2, 16, 4), np.float32))
            >>> two_steps = b.reshape(x, [2, 1, 3])
            >>> hidden, cell = b.lstm(two_steps, weight, recurrent_weight, 2, 4, direction="both")
            >>> hidden.shape, cell.shape
            ((2, 1, 4), (2, 1, 4))

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-lstm
        """
        return self._recurrent(
            "lstm",
            [input, weight, recurrent_weight, bias, recurrent_bias, peephole_weight, initial_hidden_state, initial_cell_state],
            {
                "steps": steps,
                "hidden_size": hidden_size,
                "return_sequence": return_sequence,
                "direction": direction,
                "layout": layout,
            },
            activations,
            label,
        )

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
            input: float32 or float16, with the shape [batch, inputs].
            weight: The input's data type, as for all operands, with the shape [4 * hidden_size, inputs]. The gates are in the
                order of `layout`.
            recurrent_weight: [4 * hidden_size, hidden_size].
            hidden_state: The hidden state before the step, [batch, hidden_size].
            cell_state: The cell state before the step, [batch, hidden_size].
            hidden_size: The number of hidden units.
            options: The options that follow, as one dictionary.
            bias: The input's data type, with the shape [4 * hidden_size]. The default is 0.
            recurrent_bias: The input's data type, with the shape [4 * hidden_size]. The default is 0.
            peephole_weight: [3 * hidden_size], for the input, the output and the forget gate, in this order for every layout.
                The default is 0. All three gates look at the cell state before the step.
            layout: Order of the gates, "iofg" or "ifgo": input, output, forget and cell gate.
            activations: Three activations: for the gates i, o and f, for the cell gate g, and for the new cell state. The
                default is sigmoid, tanh and tanh.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            A list of the hidden state and the cell state after the step, each [batch, hidden_size].

        Raises:
            MLTypeError: Shapes do not fit, there are not three activations, an option is not allowed, data types differ or are
                not allowed, or an operand or activation belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Outputs are rounded once. With softmax, which is applied to a whole gate, every operator of the cell rounds.

        Example:
            >>> weight, recurrent_weight = (b.constant(np.ones((16, n), np.float32)) for n in (3, 4))
            >>> state = b.constant(np.zeros((2, 4), np.float32))
            >>> [o.shape for o in b.lstm_cell(x, weight, recurrent_weight, state, state, 4, layout="ifgo")]
            [(2, 4), (2, 4)]

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-lstmcell
        """
        return self._recurrent(
            "lstmCell",
            [input, weight, recurrent_weight, hidden_state, cell_state, bias, recurrent_bias, peephole_weight],
            {"hidden_size": hidden_size, "layout": layout},
            activations,
            label,
        )

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        gruCell = gru_cell
        lstmCell = lstm_cell
