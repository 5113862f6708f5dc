"""Matrix products: the register tile, its blocking, narrow types and recurrent layers."""
