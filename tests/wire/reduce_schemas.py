"""Reduce the official schemas to their facts: no prose, no examples, no defaults.

    python -m tests.wire.reduce_schemas SOURCE

SOURCE holds <revision>/schema.json; tests/wire/schemas/<revision>.json is written
for each.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

SCHEMAS: Final = Path(__file__).with_name("schemas")

# Keywords that validate nothing.
ANNOTATIONS: Final = frozenset(
    {"$comment", "default", "deprecated", "description", "examples", "title"}
)
# Keywords whose value maps names to schemas: those names are no keywords.
NAMED_SCHEMAS: Final = frozenset({"$defs", "definitions", "properties"})
# Keywords whose value is data, to be kept as it is.
DATA: Final = frozenset({"const", "enum", "required"})


def reduced(schema: Any) -> Any:
    """The schema with the keywords that validate, in their order."""
    if isinstance(schema, list):
        return [reduced(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: _reduced_value(keyword, value)
        for keyword, value in schema.items()
        if keyword not in ANNOTATIONS
    }


def _reduced_value(keyword: str, value: Any) -> Any:
    if keyword in DATA:
        return value
    if keyword in NAMED_SCHEMAS:
        return {name: reduced(schema) for name, schema in value.items()}
    return reduced(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    source: Path = parser.parse_args().source
    SCHEMAS.mkdir(exist_ok=True)
    for path in sorted(source.glob("????-??-??/schema.json")):
        text = json.dumps(reduced(json.loads(path.read_bytes())), indent=1)
        target = SCHEMAS / f"{path.parent.name}.json"
        target.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
