"""Configs of look-ups and of calls of other sites, in words that Django has, too."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

import orjson
from django.apps import apps as site_apps
from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models.fields.reverse_related import ForeignObjectRel

from mcp_app.models.fields import digest, parse_json
from mcp_app.protocol import jsonrpc

LOOKUPS: Final = {
    **{"is": "exact", "is_any_case": "iexact", "one_of": "in"},
    **{"begins": "istartswith", "contains": "icontains"},
    **{"least": "gte", "most": "lte", "empty": "isempty"},
}
AGGREGATES: Final = {"average": "avg", "least": "min", "greatest": "max"}
DEFINITIONS: Final = ("Tool", "Resource", "ResourceTemplate", "Prompt")


def new_config(kind: str, config: Any) -> Any:
    """Return a config in the new words; what nobody can read stays as it is."""
    if kind == "query" and isinstance(config, dict):
        try:
            model = site_apps.get_model(str(config.get("model")))
        except (LookupError, ValueError):
            model = None
        return _new_query(config, model)
    if kind == "http" and isinstance(config, dict):
        body = _change(config.get("body"), "form", _new_pair)
        config = {**config, "body": body} if "body" in config else config
        return _rename(_change(config, "query", _new_pair), {"most": "limit"})
    return config


def _new_query(query: Any, model: Any) -> Any:
    query = _rename(query, {"by": "group_by", "most": "limit"})
    groups = isinstance(query, dict) and query.get("answer") == "groups"
    if groups and "'aggregate'" not in str(query.get("measures")):
        # They were of the rows that the query gave before.
        query = {k: v for k, v in query.items() if k not in ("order", "limit")}
        query |= _usual_order(query)
    for name, change in {
        "filters": lambda each: _new_filter(each, model),
        "order": lambda each: _with_key(each, model),
        "lists": lambda each: _new_query(each, _target(model, each)),
        "group_by": lambda each: _rename(each, {"each": "unit"}),
        "measures": _new_measure,
    }.items():
        query = _change(query, name, change)
    return query


def _usual_order(query: Any) -> dict[str, Any]:
    """Return the order that groups had, where another is usual now: the first sum."""
    measures, by = query.get("measures"), query.get("group_by")
    if not isinstance(measures, list) or not isinstance(by, list):
        return {}
    names = [
        (each.get("do"), each.get("as")) for each in measures if isinstance(each, dict)
    ]
    has_dates = any(isinstance(each, dict) for each in by)
    later = names and names[0][0] != "sum" and any(do == "sum" for do, _ in names)
    return {"order": [f"-{names[0][1]}"]} if later and not has_dates else {}


def _new_filter(each: Any, model: Any) -> Any:
    if not isinstance(each, dict) or "is" not in each:
        return each
    new = _rename(each, {"is": "lookup"})
    is_known = isinstance(each["is"], str)
    new["lookup"] = LOOKUPS.get(each["is"], each["is"]) if is_known else each["is"]
    return {**new, "path": _with_key(new.get("path"), model)}


def _new_measure(each: Any) -> Any:
    new = _rename(each, {"do": "aggregate", "as": "name"})
    if isinstance(new, dict) and isinstance(new.get("aggregate"), str):
        new["aggregate"] = AGGREGATES.get(new["aggregate"], new["aggregate"])
    return new


def _new_pair(each: Any) -> Any:
    return _rename(each, {"as": "style"})


def _rename(value: Any, names: dict[str, str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {names.get(name, name): each for name, each in value.items()}


def _change(value: Any, name: str, change: Callable[[Any], Any]) -> Any:
    if not isinstance(value, dict) or not isinstance(value.get(name), list):
        return value
    return {**value, name: [change(each) for each in value[name]]}


def _with_key(path: Any, model: Any) -> Any:
    """Return a path whose relation at the end, which was its key, is that still."""
    names = path.removeprefix("-").split(".") if isinstance(path, str) else []
    relation = None
    for name in names:
        relation = _relation(model, name)
        model = relation and relation.related_model
    to_one = relation and (relation.many_to_one or relation.one_to_one)
    return f"{path}.pk" if to_one else path


def _target(model: Any, listed: Any) -> Any:
    path = listed.get("path") if isinstance(listed, dict) else None
    relation = _relation(model, path)
    return relation and relation.related_model


def _relation(model: Any, name: Any) -> Any:
    for each in model._meta.get_fields() if model else ():
        if each.is_relation:
            is_reverse = isinstance(each, ForeignObjectRel)
            if name == (each.get_accessor_name() if is_reverse else each.name):
                return each
    return None


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
