"""Resizing, sampling, boxes and blocks of images."""
