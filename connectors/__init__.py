"""Connectors: how the engine reads from and writes to the world outside; one folder a system."""
