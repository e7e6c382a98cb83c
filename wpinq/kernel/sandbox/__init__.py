"""Untrusted mode: admission, resource limits and child processes."""
