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
    changed_members,
    is_same_json,
    readable_pair,
    readable_value,
)
from mcp_app.publishing.differences.schema_compatibility import (
    is_schema,
    move_differences,
    schema_differences,
)


def compare_columns(field: str, old: object, new: object) -> list[Difference]:
    """Return what differs within a column, where it can be taken apart."""
    if field not in _COMPARERS:
        return []
    fits, compare = _COMPARERS[field]
    return list(compare(field, old, new)) if fits(old) and fits(new) else []


def _name_differences(field: str, old: object, new: object) -> Iterator[Difference]:
    breaks = ""
    if old is not ABSENT:
        message = _("The name changes from %(old)s to %(new)s: calls to %(old)s fail.")
        breaks = message % {"new": new, "old": old}
    yield Difference(field, "", *readable_pair(old, new), breaks)


def _are_arguments(value: object) -> bool:
    if value is ABSENT:
        return True
    if not isinstance(value, list):
        return False
    names = {
        each["name"]
        for each in value
        if isinstance(each, dict)
        and isinstance(each.get("name"), str)
        and are_texts(each.get("suggestions", []))
    }
    return len(names) == len(value)


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
        one, other = (
            ABSENT
            if each is None
            else {key: value for key, value in each.items() if key != "suggestions"}
            for each in (was, now)
        )
        if not is_same_json(one, other):
            texts = readable_pair(one, other, _argument_text)
            yield Difference(field, part, *texts, breaks)
        part = _("argument %(name)s, suggestions") % {"name": name}
        one, other = ((each or {}).get("suggestions") or ABSENT for each in (was, now))
        if not is_same_json(one, other):
            texts = readable_pair(one, other, _plain_lines)
            yield Difference(field, part, *texts)
    yield from move_differences(field, _("argument %(name)s, place"), before, after)


def _are_suggestions(value: object) -> bool:
    """Whether it has a list of texts for each variable."""
    if value is ABSENT:
        return True
    return isinstance(value, dict) and all(map(are_texts, value.values()))


def _variables(field: str, old: Any, new: Any) -> Iterator[Difference]:
    for name, was, now in changed_members(old, new):
        part = _("variable %(name)s") % {"name": name}
        yield Difference(field, part, *readable_pair(was, now, _plain_lines))


def _argument_text(value: Any) -> str | None:
    if value is ABSENT:
        return None
    parts = [str(value.get("title") or value["name"])]
    if value.get("required"):
        parts.append(_("(required)"))
    if value.get("description"):
        parts.append(str(value["description"]))
    return " ".join(parts)


def _config_differences(field: str, old: Any, new: Any) -> Iterator[Difference]:
    was_text, is_text = _only_text(old), _only_text(new)
    was_function, is_function = _function_key(old), _function_key(new)
    messages = [_content_blocks(value, "messages") for value in (old, new)]
    parts = [_content_blocks(value, "content") for value in (old, new)]
    if is_function is not None and (old is ABSENT or was_function is not None):
        yield Difference(field, _("function"), was_function, is_function)
    elif is_text is not None and (old is ABSENT or was_text is not None):
        yield Difference(field, _("text"), *readable_pair(old, new, _only_text))
    elif messages[1] and (old is ABSENT or messages[0]):
        label = _("message %(number)d")
        yield from _numbered_differences(field, label, messages, _message_text)
    elif parts[1] and (old is ABSENT or parts[0]):
        label = _("part %(number)d of the answer")
        yield from _numbered_differences(field, label, parts, _block_text)


def _numbered_differences(
    field: str,
    part_template: str,
    sides: Iterable[Sequence[Any]],
    words: Callable[[Any], str | None],
) -> Iterator[Difference]:
    pairs = zip_longest(*sides, fillvalue=ABSENT)
    for number, (was, now) in enumerate(pairs, 1):
        if not is_same_json(was, now):
            part = part_template % {"number": number}
            yield Difference(field, part, *readable_pair(was, now, words))


def _content_blocks(config: object, name: str) -> list[Any]:
    """Return what a config holds that is nothing but this list."""
    if not isinstance(config, dict) or config.keys() != {name}:
        return []
    blocks = config[name]
    return blocks if isinstance(blocks, list) else []


def _message_text(message: Any) -> str | None:
    if not isinstance(message, dict):
        return readable_value(message)
    role = _("Assistant") if message.get("role") == "assistant" else _("User")
    return f"{role}: {_block_text(message.get('content', ''))}"


def _block_text(content: object) -> str | None:
    """Return a content block: a text as it is, a file in words, others as JSON."""
    if not isinstance(content, dict):
        return readable_value(content)
    if content.keys() == {"type", "text"}:
        return readable_value(content["text"])
    inside = content
    if content.keys() == {"type", "resource"} and isinstance(content["resource"], dict):
        inside = content["resource"]
    if "upload" in inside and inside.keys() <= {"type", "uri", "mimeType", "upload"}:
        parts = [str(inside[name]) for name in ("mimeType", "uri") if name in inside]
        parts.append(_("fingerprint %(digest)s") % {"digest": inside["upload"]})
        return _("File: %(about)s") % {"about": ", ".join(parts)}
    return readable_value(content)


def _function_key(config: object) -> str | None:
    if not isinstance(config, dict) or config.keys() != {"function"}:
        return None
    key = config["function"]
    return key if isinstance(key, str) else None


def _only_text(config: object) -> str | None:
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


def _member_differences(field: str, old: Any, new: Any) -> Iterator[Difference]:
    """Yield what differs member by member; lists of plain values in lines."""
    for name, was, now in changed_members(old, new):
        words = _audience_text if name == "audience" else _plain_lines
        yield Difference(field, name, *readable_pair(was, now, words))


def _plain_lines(value: Any) -> str | None:
    if not isinstance(value, list) or any(isinstance(each, dict) for each in value):
        return readable_value(value)
    return "\n".join(map(str, value))


def _audience_text(value: Any) -> str | None:
    """Return the readers in an order of their own: no order means anything here."""
    if not are_texts(value):
        return readable_value(value)
    return " ".join(sorted(set(value), reverse=True))


def _is_anything(value: object) -> bool:
    return True


_COMPARERS: Mapping[
    str, tuple[Callable[[object], bool], Callable[..., Iterator[Difference]]]
] = {
    "name": (_is_anything, _name_differences),
    "uri": (_is_anything, _name_differences),
    "uri_template": (_is_anything, _name_differences),
    "input_schema": (is_schema, schema_differences),
    "arguments": (_are_arguments, _arguments),
    "suggestions": (_are_suggestions, _variables),
    "config": (_is_anything, _config_differences),
    "annotations": (_is_object, _member_differences),
    "chosen": (_is_object, _member_differences),
}
"""By column: whether a value is what the comparer can take apart, and the comparer."""
