"""Algorithms that several rooms share: random numbers, transforms of small convolutions."""
