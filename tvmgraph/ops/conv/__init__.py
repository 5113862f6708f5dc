"""Convolutions and their derivatives."""
