"""What others must supply to the engine, as protocols: no behaviour, only shapes and their promises."""
