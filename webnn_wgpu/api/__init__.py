"""The objects of the WebNN specification, one module per interface."""
