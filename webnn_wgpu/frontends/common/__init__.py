"""The shared parts of the importers of models: held data types, calls of operators, and exact sums of integers."""
