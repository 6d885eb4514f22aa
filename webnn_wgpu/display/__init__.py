"""Tables, HTML and pictures of graphs, for terminals and notebooks."""
