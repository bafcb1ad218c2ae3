"""What is measured against peers. Prints tables; never asserts a time."""
