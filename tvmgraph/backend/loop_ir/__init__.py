"""What a PrimFunc computes: its stages, sums of products, reads and conditions."""
