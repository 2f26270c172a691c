"""An index of some rows, where the database can have one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.backends.ddl_references import Statement


class PartialIndex(models.Index):
    """An index of the rows that meet a condition; MySQL and MariaDB index all rows.

    Django's own `condition` does the same, but warns each site on those databases.
    """

    def __init__(self, *, rows: models.Q, **options: Any) -> None:
        self.rows = rows
        super().__init__(**options)

    def deconstruct(self) -> Any:
        path, expressions, options = super().deconstruct()
        return path, expressions, {**options, "rows": self.rows}

    def create_sql(
        self,
        model: type[models.Model],
        schema_editor: BaseDatabaseSchemaEditor,
        using: str = "",
        **options: Any,
    ) -> Statement:
        index = models.Index(fields=self.fields, name=self.name, condition=self.rows)
        return index.create_sql(model, schema_editor, using, **options)
