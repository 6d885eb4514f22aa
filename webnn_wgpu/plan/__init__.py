"""Planning: lifetimes, slots, constants, uniforms; the result is an `ExecutionPlan` of plain data."""

from .execution_plan import ExecutionPlan
from .planner import make_plan

__all__ = ["ExecutionPlan", "make_plan"]
