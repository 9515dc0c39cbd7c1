"""Keyed state while a job runs: what authors declare, the layers a value lives in, and its snapshots."""
