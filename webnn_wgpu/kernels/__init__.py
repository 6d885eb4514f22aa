"""Kernels as data: which template, with which parameters, over which operands, on which grid."""
