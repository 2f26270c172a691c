"""Faults of one line, and whether the tests find them: `python -m tests.suite.faults`.

`before.jsonl` is what seed 20261122 draws, 30 of them, from the suite's beginnings.
"""
