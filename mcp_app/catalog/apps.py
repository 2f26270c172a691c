"""Pages that clients show in place of a tool's answer (MCP Apps), two of them ours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _

from mcp_app.catalog.decorators import DefinitionOptions
from mcp_app.catalog.findings import check_options
from mcp_app.catalog.runnable import Runnable, leave_unconverted
from mcp_app.conf import mcp_settings
from mcp_app.interface.definitions import Label, ResourceDefinition
from mcp_app.interface.errors import RegistrationError
from mcp_app.protocol.apps import (
    MEDIA_TYPE,
    META_KEY,
    SCHEME,
    origin_problem,
    resource_meta,
)

TTL_MS: Final = 3_600_000
"""How long hosts may keep a page."""
TABLE: Final = "ui://mcp_app/table"
CHART: Final = "ui://mcp_app/chart"
_OURS: Final[Mapping[str, tuple[Label, Label, str]]] = {
    TABLE: (
        _("Table"),
        _("Shows the rows of an answer as a table."),
        "mcp_app/apps/table.html",
    ),
    CHART: (
        _("Chart"),
        _("Shows the numbers of an answer as bars."),
        "mcp_app/apps/chart.html",
    ),
}
"""Our own pages: title, description and template of each, by address."""

Permission: TypeAlias = Literal[
    "camera", "microphone", "geolocation", "clipboard-write"
]
Policy: TypeAlias = Mapping[
    Literal["connect", "resources", "frames", "base"], Sequence[str]
]
"""Which other sites a page uses; each is an origin, `https://*.example.com`.

It may `connect` to some, load `resources` such as scripts and pictures, show `frames`,
and have a `base` for its addresses.
"""


class AppOptions(DefinitionOptions, total=False):
    """What `app` takes; hosts decide what they do with it.

    `template` is the name of a template, or a function that returns HTML.  `csp` says
    which other sites the page uses, `permissions` what it asks of the browser.
    `border` asks the host for a border or for none; `domain` is its origin there.
    """

    template: str | Callable[[], str]
    csp: Policy
    permissions: Sequence[Permission]
    border: bool | None
    domain: str


def read_app_options(uri: str, options: AppOptions) -> tuple[Any, dict[str, Any]]:
    """Return the template of an app, and the options of its resource.

    Raises `RegistrationError` if hosts would not show the app.
    """
    check_options(f"mcp.app({uri!r})", "app", AppOptions, options)
    values: dict[str, Any] = dict(options)
    template = values.pop("template", None)
    policy: Policy = values.pop("csp", {})
    problems = [*_app_problems(uri, template, policy, values.get("meta", {}))]
    if problems:
        raise RegistrationError(f"mcp.app({uri!r}): {' '.join(problems)}")
    ui = resource_meta(
        policy,
        values.pop("permissions", ()),
        border=values.pop("border", None),
        domain=values.pop("domain", ""),
    )
    meta = {**values.pop("meta", {}), **({META_KEY: ui} if ui else {})}
    values.setdefault("name", uri.rpartition("/")[2])
    values.setdefault("ttl_ms", TTL_MS)
    shared = {"mime_type": MEDIA_TYPE, "meta": meta, "public": True}
    return template, {**values, **shared}


def _app_problems(
    uri: str, template: object, policy: Policy, meta: Mapping[str, object]
) -> Iterator[str]:
    if not uri.startswith(SCHEME) or "{" in uri:
        yield f"The address must begin with {SCHEME} and have no variables."
    if not template:
        yield 'It needs template="shop/orders.html", or a function that returns HTML.'
    if META_KEY in meta:
        yield f"The options make the key {META_KEY!r} of meta: leave it out."
    origins: Any = policy.values()
    yield from filter(None, (origin_problem(each) for urls in origins for each in urls))


def app_renderer(template: str, uri: str, module: str) -> Callable[[], str]:
    """Return a function that renders a template; errors show it as code of `module`."""

    def render_app() -> str:
        return render_page(template)

    render_app.__module__, render_app.__qualname__ = module, f"app({uri!r})"
    render_app.__doc__ = "A page that shows the answers of tools."
    return render_app


def render_page(template: str) -> str:
    """Return the page that a template renders; ValueError if the page is too long."""
    html = render_to_string(template)
    size, limit = len(html.encode()), mcp_settings.limits.text
    if size > limit:
        raise ValueError(
            f"The page of {template!r} has {size} bytes; LIMITS['text'] allows {limit}."
        )
    return html


def our_apps(
    tags: Mapping[str, Collection[str]],
) -> Iterator[tuple[ResourceDefinition, Runnable[object]]]:
    """Yield our pages for the URIs in `tags`, each with the tags given for its URI."""
    for uri in tags.keys() & _OURS.keys():
        title, description, template = _OURS[uri]
        definition = ResourceDefinition(
            uri=uri,
            name=uri.rpartition("/")[2],
            title=str(title),
            description=str(description),
            mime_type=MEDIA_TYPE,
            tags=frozenset(tags[uri]),
            ttl_ms=TTL_MS,
            public=True,
        )
        yield definition, _page_runnable(template)


def _page_runnable(template: str) -> Runnable[object]:
    return Runnable(
        run=lambda: render_to_string(template),
        style="sync",
        bind=lambda _arguments: {},
        convert=leave_unconverted,
    )


def our_app_title(uri: str) -> Label:
    """Return the title of one of our pages for staff; "" for any other page."""
    return _OURS[uri][0] if uri in _OURS else ""
