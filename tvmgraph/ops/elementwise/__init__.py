"""Rows that compute single elements, and comparisons."""
