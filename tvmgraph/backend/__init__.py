"""From loop nests to machine code: kernels and code generation for every kind of device."""
