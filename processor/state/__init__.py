"""Keyed state while a job runs: what authors declare, the cache or dict a value lives in, and its snapshots."""
