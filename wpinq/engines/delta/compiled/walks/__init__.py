"""Random walks over graphs inside compiled code."""
