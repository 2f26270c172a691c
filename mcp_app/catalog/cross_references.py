"""What declarations name of each other, and nothing declares.

It can be told only when all modules are loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from mcp_app.catalog.problems import Place
from mcp_app.catalog.registry import Registry
from mcp_app.interface.definitions import Definition
from mcp_app.protocol.uri_templates import UriTemplate


def problems(registry: Registry) -> list[str]:
    """Return a sentence for all that is not served, by files and lines."""
    found = {
        **registry.problems,
        **dict(_unknown_arguments(registry)),
        **dict(_unopened(registry)),
    }
    return sorted(found, key=found.__getitem__)


def _unknown_arguments(registry: Registry) -> Iterator[tuple[str, Place]]:
    """Yield the completers of arguments that a prompt or a template does not have.

    A prompt or a template that no code declares may be one of staff.
    """
    for (reference, argument), function in registry.completers.items():
        known = _arguments(registry, reference)
        if known is not None and argument not in known:
            has = f"It has {', '.join(known)}." if known else "It has none."
            place = registry.origins["completer", (reference, argument)].place
            said = f"{reference!r} has no argument {argument!r} to complete. {has}"
            yield f"{place}: {function.qualified_name}: {said}", place


def _unopened(registry: Registry) -> Iterator[tuple[str, Place]]:
    """Yield the relations that open models have to models that are not opened."""
    if not registry.open_models:
        return
    # Models can be imported only where the app registry is ready.
    from mcp_app.catalog.open_models import missing_targets  # noqa: PLC0415

    for sentence, label in missing_targets(registry.open_models):
        place = registry.origins["open model", label].place
        yield f"{place}: {sentence}", place


def unknown_rules(registry: Registry) -> Iterator[tuple[str, str]]:
    """Yield a sentence for each definition whose rule nothing registers, and its key.

    A rule may be registered by a module that is imported later.
    """
    for what, declared in (
        ("tool", registry.tools),
        ("resource", registry.resources),
        ("resource template", registry.templates),
        ("prompt", registry.prompts),
    ):
        for key, each in declared.items():
            place = registry.origins[what, key].place
            for rule in _lacking(registry, each.definition):
                close = get_close_matches(rule, registry.rules, 1)
                meant = f" Did you mean {close[0]!r}?" if close else ""
                said = f"{key!r} requires the rule {rule!r}, which no code registers"
                yield f"{place}: {said}, so nobody will see it.{meant}", rule


def _lacking(registry: Registry, definition: Definition) -> Iterator[str]:
    for rule in definition.demands.rules:
        if rule not in registry.rules:
            yield rule


def _arguments(registry: Registry, reference: str) -> list[str] | None:
    if reference in registry.prompts:
        prompt = registry.prompts[reference].definition
        return [argument.name for argument in prompt.arguments]
    if reference in registry.templates:
        return [*UriTemplate.parse(reference).variables]
    return None
