"""Writing functions statement by statement, as a type checker should see it."""

from .base import IRBuilder as IRBuilder
