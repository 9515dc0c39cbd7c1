"""Every knob, typed: units, sections, where each value came from."""
