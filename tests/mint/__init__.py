"""Tests of tvmgraph.mint against recorded results of PyTorch."""
