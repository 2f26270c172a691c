"""Resources that show instances of a model: their clients hear of each save.

Each save is recorded, also if nobody watches.  A check for subscriptions would miss
a subscription that commits after the check and before the save.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import Model
from django.db.models.signals import post_delete, post_save

from mcp_app.interface.errors import RegistrationError
from mcp_app.invalidation.changes import record_resource
from mcp_app.protocol.uri_templates import UriTemplate


@dataclass(frozen=True, slots=True)
class Binding:
    """A resource or a template, and the model whose instances it shows."""

    uri: str
    model: type[Model]
    template: UriTemplate | None

    def uri_of_instance(self, instance: Model) -> str:
        """Return the URI that shows an instance; the template names its attributes."""
        if self.template is None:
            return self.uri
        names = self.template.variables
        values = {name: str(getattr(instance, name)) for name in names}
        return self.template.expand(values)

    def may_show_uri(self, uri: str) -> bool:
        """Whether a URI may show an instance of the model."""
        if self.template is None:
            return uri == self.uri
        return self.template.match(uri) is not None


def bind_model(owner: str, uri: str, model: object) -> Binding | None:
    """Bind a resource, or a template, to a model.

    Raises `RegistrationError` if instances lack an attribute that the URI needs.
    Returns None for a broken template: the declaration reports it.
    """
    if not (isinstance(model, type) and issubclass(model, Model)):
        raise RegistrationError(
            f"{owner}: the option model is {model!r}. It must be a Django model, such"
            " as Order."
        )
    try:
        template = UriTemplate.parse(uri) if "{" in uri else None
    except ValueError:
        return None
    missing = missing_attributes(model, template.variables if template else ())
    if missing:
        raise RegistrationError(
            f"{owner}: the model {model._meta.label} has no {missing[0]!r}, which"
            f" {uri} needs."
        )
    return Binding(uri, model, template)


def missing_attributes(model: type[Model], names: Iterable[str]) -> list[str]:
    """Return the names that instances of a model do not have."""
    fields = {field.name for field in model._meta.get_fields()}
    return [name for name in names if name not in fields and not hasattr(model, name)]


def connect_signals(bindings: Iterable[Binding]) -> None:
    """Record a change of the resource whenever an instance is saved or deleted."""
    for binding in bindings:
        receiver: Any = partial(_record_change, binding)
        for signal in (post_save, post_delete):
            # Without `sender`, saves of proxies and subclasses are told, too.
            signal.connect(receiver, weak=False, dispatch_uid=f"mcp_app {binding.uri}")


def _record_change(
    binding: Binding, sender: type[Model], instance: Model, using: str, **_: object
) -> None:
    if issubclass(sender, binding.model):
        record_resource(using, binding.uri_of_instance(instance))
