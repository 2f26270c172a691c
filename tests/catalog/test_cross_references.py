from __future__ import annotations

from collections.abc import Callable

import pytest

from mcp_app.catalog.lint import problems, unknown_rules
from mcp_app.catalog.registry import Registry


def words(value: str) -> list[str]:
    return [value]


def letter(name: str) -> str:
    return name


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.prompt(letter)
    registry.prompt("empty")(lambda: "")
    registry.resource("orders:{name}")(letter)
    return registry


@pytest.mark.parametrize(
    ("reference", "argument", "said"),
    [
        ("letter", "name", None),
        ("letter", "nmae", "'letter' has no argument 'nmae' to complete. It has name."),
        ("empty", "a", "'empty' has no argument 'a' to complete. It has none."),
        ("orders:{name}", "name", None),
        (
            "orders:{name}",
            "number",
            "'orders:{name}' has no argument 'number' to complete. It has name.",
        ),
        # Staff may make one of this name.
        ("of staff", "a", None),
    ],
)
def test_completers_of_unknown_arguments(
    registry: Registry, reference: str, argument: str, said: str | None
) -> None:
    registry.complete(reference, argument)(words)
    start = (
        f"{__file__}:{registry.origins['completer', (reference, argument)].place.line}"
    )
    expected = [] if said is None else [f"{start}: {__name__}.words: {said}"]
    assert problems(registry) == expected


@pytest.mark.parametrize(
    ("declare", "what"),
    [
        (lambda registry: registry.tool("a", rule="weekday"), "a"),
        (lambda registry: registry.prompt("a", rule="weekday"), "a"),
        (lambda registry: registry.resource("a:b", rule="weekday"), "a:b"),
        (lambda registry: registry.resource("a:{name}", rule="weekday"), "a:{name}"),
    ],
)
def test_unknown_rules(
    registry: Registry,
    declare: Callable[[Registry], Callable[[object], object]],
    what: str,
) -> None:
    declare(registry)(lambda name="": name)
    [(sentence, rule)] = unknown_rules(registry)
    assert rule == "weekday"
    assert sentence.startswith(f"{__file__}:")
    assert sentence.endswith(
        f": {what!r} requires the rule 'weekday', which no code registers, so nobody"
        " will see it."
    )
    registry.rule("weekdays")(lambda asked: True)
    [(sentence, _)] = unknown_rules(registry)
    assert sentence.endswith(" Did you mean 'weekdays'?")
    registry.rule("weekday")(lambda asked: True)
    assert [*unknown_rules(registry)] == []
