"""The script dialect of loops, as a type checker should see it."""

from . import builder as builder
