"""What travels between steps: batches of records and the marks between them."""
