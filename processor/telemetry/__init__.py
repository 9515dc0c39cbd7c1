"""What the product says about itself: logs, counters, progress, errors as text."""
