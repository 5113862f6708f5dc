"""Rows that exchange data with other processes."""
