"""One subtask: reads its inputs, runs its chain, takes part in checkpoints, publishes what was decided."""
