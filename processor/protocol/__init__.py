"""Decides. All of exactly-once is here, as state machines: events in, actions out; no clock, chance, thread or I/O."""
