"""The links between subtasks."""
