"""Matrix products, decompositions and solvers."""
