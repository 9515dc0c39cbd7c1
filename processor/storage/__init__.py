"""What keeps: files of checkpoints, the decision log beside them, and their formats."""
