"""The intermediate representation: immutable graphs of specification operators with every shape and data type known."""
