from __future__ import annotations

import pytest

from mcp_app.catalog.type_hints import Documentation, documentation

GOOGLE = """Find orders.

    Newest first.

    Args:
        customer (str): The customer's
            number.
        limit: How many: at most 100.
        **rest (dict[str, int], optional): The rest.

    Returns:
        The orders.
    """
NUMPY = """
    Find orders.

    Parameters
    ----------
    customer : str
        The customer's
        number.
    first, last : date, optional
        The days.
    silent

    Returns
    -------
    list
        The orders.
    """
REST = """Find orders.

    :param str customer: The customer's
        number.
    :param limit: How many.
    :type limit: int
    :returns: The orders.
    """

CASES = [
    (None, Documentation()),
    ("", Documentation()),
    ("One line.", Documentation("One line.")),
    ("Two.\n\n    Paragraphs: here.", Documentation("Two.\n\nParagraphs: here.")),
    (
        GOOGLE,
        Documentation(
            "Find orders.\n\nNewest first.",
            {
                "customer": "The customer's number.",
                "limit": "How many: at most 100.",
                "rest": "The rest.",
            },
        ),
    ),
    (
        NUMPY,
        Documentation(
            "Find orders.",
            {
                "customer": "The customer's number.",
                "first": "The days.",
                "last": "The days.",
            },
        ),
    ),
    (
        REST,
        Documentation(
            "Find orders.",
            {"customer": "The customer's number.", "limit": "How many."},
        ),
    ),
    ("Text.\n\nArgs:\n", Documentation("Text.")),
    ("T.\n\nArgs:\n    No item.\n    a: First.", Documentation("T.", {"a": "First."})),
    (
        "T.\n\nParameters\n----------\n\na\n    First.",
        Documentation("T.", {"a": "First."}),
    ),
    ("T.\n\nParameters\n----------\n", Documentation("T.")),
    ("\n    Args:\n        a: First.\n    ", Documentation("", {"a": "First."})),
    ("Text.\n\n:returns: it", Documentation("Text.")),
    (
        "Say it::\n\nArgs: here is no section",
        Documentation("Say it::\n\nArgs: here is no section"),
    ),
    ("Parameters\nare many.", Documentation("Parameters\nare many.")),
    (
        "T.\n\nParameters\n----------\na\n    First.",
        Documentation("T.", {"a": "First."}),
    ),
    (
        "T.\n\nArgs:\n    a: First.\n\nKeyword Args:\n    b: Second.",
        Documentation("T.", {"a": "First.", "b": "Second."}),
    ),
]


@pytest.mark.parametrize(("docstring", "expected"), CASES)
def test_documentation(docstring: str | None, expected: Documentation) -> None:
    assert documentation(docstring) == expected
