"""A job as data: its graph, and how the graph is laid out in chains and subtasks."""
