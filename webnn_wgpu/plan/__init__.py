"""Planning: lifetimes, slots, constants and uniforms. The result is an `ExecutionPlan` of plain data."""

from .execution_plan import ExecutionPlan
from .planner import make_plan

__all__ = ["ExecutionPlan", "make_plan"]
