"""Errors, data types and the device's capabilities. This package imports nothing else of webnn_wgpu."""
