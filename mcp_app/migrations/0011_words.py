"""Configs of look-ups and of calls of other sites, in words that Django has, too."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import orjson
from django.apps import apps as site_apps
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models.fields.reverse_related import ForeignObjectRel

from mcp_app.models.fields import digest, parse_json
from mcp_app.protocol import jsonrpc

QUERY: Final = {
    **{"is": "lookup", "do": "aggregate", "as": "name", "by": "group_by"},
    **{"each": "unit", "most": "limit"},
}
HTTP: Final = {"as": "style", "most": "limit"}
LOOKUPS: Final = {
    **{"is": "exact", "is_any_case": "iexact", "one_of": "in"},
    **{"begins": "istartswith", "contains": "icontains"},
    **{"least": "gte", "most": "lte", "empty": "isempty"},
}
AGGREGATES: Final = {"average": "avg", "least": "min", "greatest": "max"}
FREE: Final = ("value", "default", "json")
"""Members that hold any JSON."""
DEFINITIONS: Final = ("Tool", "Resource", "ResourceTemplate", "Prompt")


def new_config(kind: str, config: Any) -> Any:
    """Return a config in the new words, whatever shape a draft has."""
    if kind == "query" and isinstance(config, dict):
        try:
            return _new_query(config, site_apps.get_model(str(config.get("model"))))
        except (LookupError, ValueError):
            return _new_query(config, None)
    return _rename(config, HTTP) if kind == "http" else config


def _rename(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_rename(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        names.get(name, name): each if name in FREE else _rename(each, names)
        for name, each in value.items()
    }


def _new_query(old: Any, model: Any) -> Any:
    """Return a query, or a list of one, in the new words; `model` is that of its rows."""
    if not isinstance(old, dict):
        return old
    new = _rename(old, QUERY)
    for name, change in {
        "filters": partial(_new_part, model=model),
        "measures": partial(_new_part, model=model),
        "order": partial(_with_key, model=model),
        "lists": partial(_new_list, model=model),
    }.items():
        if isinstance(old.get(name), list):
            new[name] = [change(each) for each in old[name]]
    if old.get("answer") == "groups" and "'aggregate'" not in str(old.get("measures")):
        # These were of the rows that the query gave before.
        new = {k: v for k, v in new.items() if k not in ("order", "limit")}
        paths = old["by"] if isinstance(old.get("by"), list) else ()
        if not any(_is_of_date(each, model) for each in paths):
            new |= _usual_order(new.get("measures"))
    return new


def _new_part(old: Any, model: Any) -> Any:
    new = _rename(old, QUERY)
    if isinstance(old, dict) and "is" in old:
        new["lookup"] = LOOKUPS.get(str(old["is"]), old["is"])
        new["path"] = _with_key(old.get("path"), model)
    if isinstance(old, dict) and "do" in old:
        new["aggregate"] = AGGREGATES.get(str(old["do"]), old["do"])
    return new


def _is_of_date(group: Any, model: Any) -> bool:
    """Return whether groups were in the order of this one: of dates."""
    path = group.get("path") if isinstance(group, dict) else group
    field = _field(path, model)
    return "'each'" in str(group) or isinstance(field, models.DateField)


def _usual_order(measures: Any) -> dict[str, Any]:
    """Return the order that groups had, where another is usual now: the first sum."""
    if not isinstance(measures, list):
        return {}
    named = [
        (each.get("aggregate"), each.get("name"))
        for each in measures
        if isinstance(each, dict)
    ]
    has_sum = any(aggregate == "sum" for aggregate, _name in named)
    is_other = has_sum and named[0][0] != "sum"
    return {"order": [f"-{named[0][1]}"]} if is_other else {}


def _with_key(path: Any, model: Any) -> Any:
    """Return a path; a relation at its end was its key, and stays that."""
    relation = _relation(path, model)
    to_one = relation and (relation.many_to_one or relation.one_to_one)
    return f"{path}.pk" if to_one else path


def _new_list(old: Any, model: Any) -> Any:
    relation = _relation(old.get("path"), model) if isinstance(old, dict) else None
    return _new_query(old, relation and relation.related_model)


def _relation(path: Any, model: Any) -> Any:
    """Return the relation at the end of a path, None if there is another field."""
    field = _field(path, model)
    return field if field is not None and field.is_relation else None


def _field(path: Any, model: Any) -> Any:
    """Return the field at the end of a path, None if there is none."""
    field = None
    for name in path.removeprefix("-").split(".") if isinstance(path, str) else ():
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
        kind, config = content.get("kind"), content.get("config")
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


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0010_issued_scope")]

    operations = [
        migrations.RunPython(write_new_words, migrations.RunPython.noop),
    ]
