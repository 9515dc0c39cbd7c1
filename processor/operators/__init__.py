"""What happens to records inside a subtask: operators, and the chain that calls them one after another."""
