"""Tests of what makes a compile visible."""
