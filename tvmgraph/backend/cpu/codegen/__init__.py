"""From scheduled loops to a processor's machine code."""
