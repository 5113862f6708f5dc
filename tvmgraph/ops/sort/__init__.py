"""Sorting, searching and unique elements."""
