"""Small real jobs, run by the tests, and the demo."""
