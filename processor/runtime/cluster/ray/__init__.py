"""Coordinator and workers on the nodes of a Ray cluster."""
