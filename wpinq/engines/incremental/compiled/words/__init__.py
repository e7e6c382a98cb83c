"""Records as words of 64 bits, and expressions over them as code."""
