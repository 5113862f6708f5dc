"""Hostile input and random programs: what fuzzers call, and what once found something."""
