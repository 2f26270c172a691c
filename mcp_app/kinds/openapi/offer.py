"""An operation of a document, as it can become a tool and as a row keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcp_app.protocol.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An operation; with a `bar` it cannot become a tool.

    `key` is method and path as the document has them, with a mark where it is cut;
    `remarks` say what is left out.
    """

    key: str
    name: str
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    input_schema: JsonObject = field(default_factory=dict)
    config: JsonObject = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    bar: str = ""

    @property
    def method(self) -> str:
        return self.key.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.key.partition(" ")[2]

    def to_json(self) -> JsonObject:
        """Return it as a row keeps it."""
        members = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in members.items() if value}

    @classmethod
    def from_json(cls, value: JsonObject) -> Offer:
        lists = {name: tuple(value.get(name, ())) for name in ("tags", "remarks")}
        return cls(**{"name": "", **value, **lists})
