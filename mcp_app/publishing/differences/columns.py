"""What differs within a column: names, schemas, arguments, suggestions and configs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from django.utils.translation import gettext as _

from mcp_app.publishing.differences.difference import (
    ABSENT,
    Difference,
    are_texts,
    both,
    same,
    shown_value,
)
from mcp_app.publishing.differences.schema_compatibility import (
    is_schema,
    moves,
    schemas,
)


def compare_columns(field: str, old: object, new: object) -> list[Difference]:
    """Return what differs within a column, where it can be taken apart."""
    if field not in _COMPARERS:
        return []
    fits, compare = _COMPARERS[field]
    return list(compare(field, old, new)) if fits(old) and fits(new) else []


def _names(field: str, old: object, new: object) -> Iterator[Difference]:
    breaks = ""
    if old is not ABSENT:
        breaks = _(
            "The name changes from %(old)s to %(new)s: calls to %(old)s fail."
        ) % {
            "new": new,
            "old": old,
        }
    yield Difference(field, "", *both(old, new), breaks)


def _are_arguments(value: object) -> bool:
    """Whether they are arguments that can be told by their names."""
    if value is ABSENT:
        return True
    if not isinstance(value, list) or not all(map(_is_argument, value)):
        return False
    return len({each["name"] for each in value}) == len(value)


def _is_argument(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and are_texts(value.get("suggestions", []))
    )


def _arguments(field: str, old: Any, new: Any) -> Iterator[Difference]:
    before, after = (
        {} if each is ABSENT else {argument["name"]: argument for argument in each}
        for each in (old, new)
    )
    for name in dict.fromkeys((*before, *after)):
        part = _("argument %(name)s") % {"name": name}
        was, now = before.get(name), after.get(name)
        breaks = ""
        if now is None:
            breaks = _("The argument %(name)s is gone.") % {"name": name}
        elif now.get("required") and not (was or {}).get("required"):
            breaks = _("The argument %(name)s is required now.") % {"name": name}
        one, other = _without_suggestions(was), _without_suggestions(now)
        if not same(one, other):
            yield Difference(field, part, *both(one, other, _argument), breaks)
        part = _("argument %(name)s, suggestions") % {"name": name}
        old_ones, new_ones = (
            (each or {}).get("suggestions") or ABSENT for each in (was, now)
        )
        if not same(old_ones, new_ones):
            yield Difference(field, part, *both(old_ones, new_ones, _lines))
    yield from moves(field, _("argument %(name)s, place"), before, after)


def _without_suggestions(argument: Mapping[str, Any] | None) -> object:
    if argument is None:
        return ABSENT
    return {name: value for name, value in argument.items() if name != "suggestions"}


def _are_suggestions(value: object) -> bool:
    """Whether it has a list of texts for each variable."""
    if value is ABSENT:
        return True
    return isinstance(value, dict) and all(map(are_texts, value.values()))


def _variables(field: str, old: Any, new: Any) -> Iterator[Difference]:
    before, after = ({} if each is ABSENT else each for each in (old, new))
    for name in dict.fromkeys((*before, *after)):
        was, now = (each.get(name, ABSENT) for each in (before, after))
        if not same(was, now):
            part = _("variable %(name)s") % {"name": name}
            yield Difference(field, part, *both(was, now, _lines))


def _lines(texts: Any) -> str | None:
    """Return suggestions with one in each line."""
    return None if texts is ABSENT else "\n".join(texts)


def _argument(value: Any) -> str | None:
    if value is ABSENT:
        return None
    said = [str(value.get("title") or value["name"])]
    if value.get("required"):
        said.append(_("(required)"))
    if value.get("description"):
        said.append(str(value["description"]))
    return " ".join(said)


def _configs(field: str, old: Any, new: Any) -> Iterator[Difference]:
    was_text, is_text = _only_text(old), _only_text(new)
    was_function, is_function = _function(old), _function(new)
    messages = [_blocks(value, "messages") for value in (old, new)]
    parts = [_blocks(value, "content") for value in (old, new)]
    if is_function is not None and (old is ABSENT or was_function is not None):
        yield Difference(field, _("function"), was_function, is_function)
    elif is_text is not None and (old is ABSENT or was_text is not None):
        yield Difference(field, _("text"), *both(old, new, _only_text))
    elif messages[1] and (old is ABSENT or messages[0]):
        yield from _numbered(field, _("message %(number)d"), messages, _message)
    elif parts[1] and (old is ABSENT or parts[0]):
        yield from _numbered(field, _("part %(number)d of the answer"), parts, _block)


def _numbered(
    field: str,
    named: str,
    sides: Iterable[Sequence[Any]],
    words: Callable[[Any], str | None],
) -> Iterator[Difference]:
    pairs = zip_longest(*sides, fillvalue=ABSENT)
    for number, (was, now) in enumerate(pairs, 1):
        if not same(was, now):
            part = named % {"number": number}
            yield Difference(field, part, *both(was, now, words))


def _blocks(config: object, name: str) -> list[Any]:
    """Return what a config holds that is nothing but this list."""
    if not isinstance(config, dict) or config.keys() != {name}:
        return []
    found = config[name]
    return found if isinstance(found, list) else []


def _message(message: Any) -> str | None:
    """Return a prompt's message as who says what."""
    if not isinstance(message, dict):
        return shown_value(message)
    role = _("Assistant") if message.get("role") == "assistant" else _("User")
    return f"{role}: {_block(message.get('content', ''))}"


def _block(content: object) -> str | None:
    """Return a content block: a text as it is, a file in words, others as JSON."""
    if not isinstance(content, dict):
        return shown_value(content)
    if content.keys() == {"type", "text"}:
        return shown_value(content["text"])
    inside = content
    if content.keys() == {"type", "resource"} and isinstance(content["resource"], dict):
        inside = content["resource"]
    if "upload" in inside and inside.keys() <= {"type", "uri", "mimeType", "upload"}:
        return _file(inside)
    return shown_value(content)


def _file(file: Mapping[str, Any]) -> str:
    said = [str(file[name]) for name in ("mimeType", "uri") if name in file]
    said.append(_("fingerprint %(digest)s") % {"digest": file["upload"]})
    return _("File: %(about)s") % {"about": ", ".join(said)}


def _function(config: object) -> str | None:
    """Return the key of a config that is nothing but a function."""
    if not isinstance(config, dict) or config.keys() != {"function"}:
        return None
    key = config["function"]
    return key if isinstance(key, str) else None


def _only_text(config: object) -> str | None:
    """Return the text of a config that is nothing but one text."""
    while isinstance(config, dict | list) and len(config) == 1:
        if isinstance(config, dict) and not config.keys() <= _AROUND_TEXT:
            return None
        (config,) = config.values() if isinstance(config, dict) else config
    if isinstance(config, str):
        return config
    if isinstance(config, dict) and config.keys() == {"type", "text"}:
        text = config["text"]
        return text if isinstance(text, str) else None
    return None


_AROUND_TEXT = frozenset({"content", "contents", "messages", "text"})


def _is_object(value: object) -> bool:
    return value is ABSENT or isinstance(value, dict)


def _members(field: str, old: Any, new: Any) -> Iterator[Difference]:
    """Yield what differs member by member; lists of plain values in lines."""
    before, after = ({} if each is ABSENT else each for each in (old, new))
    for name in dict.fromkeys((*before, *after)):
        was, now = (each.get(name, ABSENT) for each in (before, after))
        if not same(was, now):
            words = _WORDS_OF_MEMBERS.get(name, _plain_lines)
            yield Difference(field, name, *both(was, now, words))


def _plain_lines(value: Any) -> str | None:
    if not isinstance(value, list) or any(isinstance(each, dict) for each in value):
        return shown_value(value)
    return "\n".join(map(str, value))


def _audience(value: Any) -> str | None:
    """Return the readers in an order of their own: no order means anything here."""
    if not are_texts(value):
        return shown_value(value)
    return " ".join(sorted(set(value), reverse=True))


_WORDS_OF_MEMBERS: Mapping[str, Callable[[Any], str | None]] = {"audience": _audience}


def _is_anything(value: object) -> bool:
    return True


_COMPARERS: Mapping[
    str, tuple[Callable[[object], bool], Callable[..., Iterator[Difference]]]
] = {
    "name": (_is_anything, _names),
    "uri": (_is_anything, _names),
    "uri_template": (_is_anything, _names),
    "input_schema": (is_schema, schemas),
    "arguments": (_are_arguments, _arguments),
    "suggestions": (_are_suggestions, _variables),
    "config": (_is_anything, _configs),
    "annotations": (_is_object, _members),
    "chosen": (_is_object, _members),
}
"""By column: whether a value is what the comparer can take apart, and the comparer."""
