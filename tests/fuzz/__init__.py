"""Fuzzing: whatever is read gives what it means or a WpinqError, in bounded time and memory.

`python -m tests.fuzz TARGET --examples N` draws examples; `--minutes M` is led by the branches that examples reach
(with atheris, which is in no extra). What was found is kept in `tests/attacks/test_fuzzing.py`.
"""
