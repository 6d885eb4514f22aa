"""The gradient rules of the operators, by families. The definition of each operator imports its rule.

A rule states the derivative in operators that have gradients themselves, so that gradients of gradients exist.
"""
