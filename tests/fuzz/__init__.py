"""Hostile input: what fuzzers call, and the inputs that once found something."""
