"""Whole networks as users write them, small enough for tests and scalable for measurements."""
