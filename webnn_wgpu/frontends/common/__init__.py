"""What the importers of models share: held data types, calls of operators, and exact sums of integers."""
