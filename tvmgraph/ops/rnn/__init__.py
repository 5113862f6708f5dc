"""Recurrent layers over all steps, and their derivative."""
