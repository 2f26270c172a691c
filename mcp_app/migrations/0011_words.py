"""Configs of look-ups and of calls of other sites, in words that Django has, too."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any, Final

import orjson
from django.apps import apps as site_apps
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.exceptions import IrreversibleError
from django.db.models.fields.reverse_related import ForeignObjectRel

from mcp_app.models.fields import digest, parse_json
from mcp_app.protocol import jsonrpc

MEMBERS: Final[Mapping[str, Mapping[str, str]]] = {
    "query": {
        **{"is": "lookup", "do": "aggregate", "as": "name", "by": "group_by"},
        **{"each": "unit", "most": "limit"},
    },
    "http": {"as": "style", "most": "limit"},
}
"""What members are called now, by the kind."""
VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "lookup": {
        **{"is": "exact", "is_any_case": "iexact", "one_of": "in"},
        **{"begins": "istartswith", "contains": "icontains"},
        **{"least": "gte", "most": "lte", "empty": "isempty"},
    },
    "aggregate": {"average": "avg", "least": "min", "greatest": "max"},
}
"""What values are called now, by the new name of their member."""
FREE: Final = ("value", "default", "json")
"""They hold any JSON."""
DEFINITIONS: Final = ("Tool", "Resource", "ResourceTemplate", "Prompt")


def new_config(kind: str, old: Any) -> Any:
    """Return a config in the new words; a draft of another shape stays as it is."""
    if kind not in MEMBERS or _has_new_words(kind, old):
        return old
    try:
        new = deepcopy(old)
        if kind == "query":
            _keep_meaning(new)
        return _rename(new, MEMBERS[kind])
    except (AttributeError, KeyError, TypeError):
        return old


def _has_new_words(kind: str, value: Any) -> bool:
    if isinstance(value, list):
        return any(_has_new_words(kind, each) for each in value)
    return isinstance(value, dict) and any(
        name in MEMBERS[kind].values()
        or (name not in FREE and _has_new_words(kind, each))
        for name, each in value.items()
    )


def _rename(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_rename(each, words) for each in value]
    if not isinstance(value, dict):
        return value
    renamed = {}
    for name, each in value.items():
        now = words.get(name, name)
        if now in VALUES:
            renamed[now] = VALUES[now].get(each, each)
        else:
            renamed[now] = each if name in FREE else _rename(each, words)
    return renamed


def _keep_meaning(query: Any) -> None:
    """Let a query say what it meant, where that means something else now."""
    model = None
    with suppress(LookupError, ValueError):
        model = site_apps.get_model(query["model"])
    _keep_keys(query, model)
    measures = query.get("measures", ())
    if query.get("answer") == "groups" and all("do" in each for each in measures):
        # These were of the rows that the query gave before.
        query.pop("order", None)
        query.pop("most", None)
        # Groups without a date began with the largest first measure, and do now with
        # that of the first sum.
        is_dated = any(_is_of_date(each, model) for each in query.get("by", ()))
        sums = [each["do"] == "sum" for each in measures]
        if any(sums) and not sums[0] and not is_dated:
            query["order"] = [f"-{measures[0]['as']}"]


def _is_of_date(group: Any, model: Any) -> bool:
    path = group if isinstance(group, str) else group["path"]
    return path is not group or isinstance(_field(path, model), models.DateField)


def _keep_keys(query: Any, model: Any) -> None:
    """A relation at the end of a path was its key, and stays that."""
    if "order" in query:
        query["order"] = [_with_key(each, model) for each in query["order"]]
    for each in query.get("filters", ()):
        if "is" in each and isinstance(each["path"], str):
            each["path"] = _with_key(each["path"], model)
    for each in query.get("lists", ()):
        relation = _field(each["path"], model)
        _keep_keys(each, relation and relation.related_model)


def _with_key(path: str, model: Any) -> str:
    field = _field(path, model)
    to_one = field and (field.many_to_one or field.one_to_one)
    return f"{path}.pk" if to_one else path


def _field(path: str, model: Any) -> Any:
    """Return the field at the end of a path, None if there is none."""
    field = None
    for name in path.removeprefix("-").split("."):
        fields = model._meta.get_fields() if model else ()
        field = {_name(each): each for each in fields}.get(name)
        model = field and field.related_model
    return field


def _name(field: Any) -> str:
    is_reverse = isinstance(field, ForeignObjectRel)
    return str(field.get_accessor_name() if is_reverse else field.name)


def write_new_words(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    using = schema_editor.connection.alias
    versions = apps.get_model("mcp_app", "DefinitionVersion").objects.using(using)
    hashes = {}
    for each in versions.iterator():
        content = _read(each.content)
        if not isinstance(content, dict):
            continue
        kind, config = content.get("kind", ""), content.get("config")
        if config != (new := new_config(kind, config)):
            text = jsonrpc.write({**content, "config": new}).decode()
            hashes[each.pk] = each.hash, digest(text)
            versions.filter(pk=each.pk).update(content=text, hash=digest(text))
    for name in DEFINITIONS:
        rows = apps.get_model("mcp_app", name).objects.using(using)
        for row in rows.filter(kind__in=["query", "http"]).iterator():
            config = new_config(row.kind, _read(row.config))
            before, now = hashes.get(row.published_id, ("", ""))
            # What was published without a change stays so, and a change a change.
            same = {"content_hash": now} if row.content_hash == before else {}
            if config:
                text = jsonrpc.write(config).decode()
                rows.filter(pk=row.pk).update(config=text, **same)
    _write_offers(apps, using)


def _read(text: str) -> Any:
    """Return JSON; an empty object for what a hand made unreadable."""
    try:
        return parse_json(text)
    except ValueError:
        return {}


def _write_offers(apps: Apps, using: str) -> None:
    """Give the operations of OpenAPI the new words: tools are compared with them."""
    operations = apps.get_model("mcp_app", "ImportedOperation").objects.using(using)
    for operation in operations.iterator():
        text = jsonrpc.write(_new_offer(_read(operation.base))).decode()
        operations.filter(pk=operation.pk).update(base=text)
    documents = apps.get_model("mcp_app", "OpenApiDocument").objects.using(using)
    for document in documents.iterator():
        offers = orjson.loads(zlib.decompress(bytes(document.offers)))
        packed = zlib.compress(jsonrpc.write([*map(_new_offer, offers)]))
        documents.filter(pk=document.pk).update(offers=packed)


def _new_offer(offer: Any) -> Any:
    return {**offer, "config": new_config("http", offer.get("config", {}))}


def refuse_old_words(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Raise IrreversibleError if there is a config that older code cannot read."""
    for name in DEFINITIONS:
        rows = apps.get_model("mcp_app", name).objects.filter(kind__in=[*MEMBERS])
        if row := rows.using(schema_editor.connection.alias).first():
            raise IrreversibleError(
                f"0011_words cannot be undone: older code does not read the config of"
                f" {row.name!r} ({name}). Restore a backup of before the upgrade."
            )


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0010_issued_scope")]

    operations = [migrations.RunPython(write_new_words, refuse_old_words)]
