"""Distances between tensors, and the errors that operators allow for one node's results."""
