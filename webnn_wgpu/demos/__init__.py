"""Models of the demo and of the examples. They use the public API only."""
