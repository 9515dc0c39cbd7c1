"""Production code in a seeded world: one thread, simulated time, processes that die and sleep."""
