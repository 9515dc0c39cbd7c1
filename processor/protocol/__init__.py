"""Decides. All of exactly-once is here, as state machines: events in, actions out.

No clock, no chance, no thread, no I/O, no logging: time comes in as an event.
"""
