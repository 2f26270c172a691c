"""Whether a server is ready for the directory of Claude, or of ChatGPT.

What the directories want was read on 30 November 2026: Anthropic's checklist
(claude.com/docs/connectors/building/review-criteria), and OpenAI's
(developers.openai.com/plugins/deploy/submission-errors, and the skill
`chatgpt-app-submission` of github.com/openai/plugins).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.catalog import lint
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.schema_lint import names_text
from mcp_app.interface.definitions import OurTool, ToolDefinition
from mcp_app.interface.server import ServerDefinition
from mcp_app.invalidation.change_reader import ChangeReader
from mcp_app.process.loading import Catalogs
from mcp_app.protocol.cards import publisher_of
from mcp_app.protocol.content import Icon
from mcp_app.protocol.headers import is_loopback_host
from mcp_app.workbench.checking.findings import Finding, Grade
from mcp_app.workbench.checking.judging import Site

CLAUDE: Final = "Claude"
CHATGPT: Final = "ChatGPT"
BOTH: Final = f"{CLAUDE}, {CHATGPT}"
SQUARES: Final = frozenset(f"{side}x{side}" for side in range(64, 4_096 + 1))
"""The sizes of icons that ChatGPT takes, in pixels."""
TOOL_RULES: Final[Mapping[str, tuple[Grade, str]]] = {
    "title-missing": (Grade.PROBLEM, CLAUDE),
    "changes-unsaid": (Grade.PROBLEM, BOTH),
    "deleting-unsaid": (Grade.PROBLEM, BOTH),
    "hints-contradict": (Grade.PROBLEM, BOTH),
    "hints-doubtful": (Grade.ADVICE, BOTH),
    "outside-unsaid": (Grade.PROBLEM, CHATGPT),
    "name-not-allowed": (Grade.PROBLEM, BOTH),
    "name-refused": (Grade.PROBLEM, BOTH),
    "description-missing": (Grade.PROBLEM, BOTH),
    "description-repeats-name": (Grade.ADVICE, BOTH),
    "description-long": (Grade.ADVICE, BOTH),
    "planted-order": (Grade.PROBLEM, BOTH),
}
"""What reviewers refuse or ask about, by the rule of lint that finds it."""
PEOPLE_KNOW: Final = (
    (BOTH, gettext_lazy("A privacy policy at a public address.")),
    (BOTH, gettext_lazy("An address where users get help.")),
    (BOTH, gettext_lazy("A test account with data, without a second factor.")),
    (BOTH, gettext_lazy("Who owns the API behind the tools.")),
    (CLAUDE, gettext_lazy("Public docs with three example requests.")),
    (CHATGPT, gettext_lazy("Five test cases, and three that call no tool.")),
)
"""What only people can check, and who wants it."""


def findings_of_server(url: str, site: Site) -> list[Finding]:
    """Judge what a server lists for somebody with all rights; blocks.

    If it is not served, nothing is returned: another check says why.
    """
    catalogs = Catalogs(mcp)
    catalogs.load_changes(ChangeReader().read_changes())
    catalog = catalogs.by_slug.get(site.slug)
    if catalog is None:
        return []
    tools = [entry.definition for entry in catalog.listings["tools"]]
    return directory_findings(catalog.server, tools, url, site)


def directory_findings(
    server: ServerDefinition, tools: Sequence[ToolDefinition], url: str, site: Site
) -> list[Finding]:
    """Return what reviewers would refuse, and last what people must check.

    `tools` are those of `tools/list`, and `url` is the public address of the server.
    """
    judged = [tool for tool in tools if not isinstance(tool, OurTool)]
    asked = [_finding("people", Grade.UNKNOWN, *each) for each in PEOPLE_KNOW]
    server_lines = _server_lines(server, url, site)
    return [*server_lines, *_tool_findings(server, judged), *asked]


def _finding(
    rule: str, grade: Grade, who: str, what: object, line: str = ""
) -> Finding:
    return Finding(rule, grade, str(what), _("Who wants it: %s.") % who, line)


def _server_lines(server: ServerDefinition, url: str, site: Site) -> Iterator[Finding]:
    host = urlsplit(url).hostname or ""
    is_name = "." in host and publisher_of(url) and not is_loopback_host(host)
    if not url.startswith("https:") or not is_name:
        what = _("Nobody outside reaches %s by https.") % url
        line = 'MCP["PUBLIC_URL"] = "https://…/mcp"'
        yield _finding("address", Grade.PROBLEM, BOTH, what, line)
    if not site.signs_in and not server.is_public:
        what = _("People cannot sign in, and would have to paste a token.")
        line = _("“Who may come in” of the server")
        yield _finding("sign-in", Grade.PROBLEM, BOTH, what, line)
    labels = (_("title"), _("description"), _("version"), _("web site"))
    texts = (server.title, server.description, server.version, server.website_url)
    missing = [name for name, text in zip(labels, texts, strict=True) if not text]
    if missing:
        what = _("The server does not say its %s.") % ", ".join(missing)
        line = _("The form of the server")
        yield _finding("server", Grade.ADVICE, BOTH, what, line)
    if not any(map(_is_square_png, server.icons)):
        what = _("No icon is a square PNG of 64 to 4,096 pixels.")
        line = _("“Icons” in the form of the server")
        yield _finding("icon", Grade.ADVICE, CHATGPT, what, line)


def _is_square_png(icon: Icon) -> bool:
    is_png = icon.src.startswith("data:image/png") or icon.src.endswith(".png")
    # An icon without a stated size may have a right one.
    fits = not SQUARES.isdisjoint(icon.sizes or SQUARES)
    return fits and (is_png or icon.mime_type == "image/png")


def _tool_findings(
    server: ServerDefinition, tools: Sequence[ToolDefinition]
) -> Iterator[Finding]:
    findings = [(tool.name, each) for tool in tools for each in lint.findings(tool)]
    for rule, (grade, who) in TOOL_RULES.items():
        hits = {name: each for name, each in findings if each.rule == rule}
        # One finding names all tools that break the rule.
        for first in [*hits.values()][:1]:
            line = _("In code: %s=…. In the admin: the form of the tool") % first.field
            what = f"{names_text(hits)}: {first.message}"
            yield _finding(rule, grade, who, what, line)
    if silent := [each.name for each in tools if each.output_schema is None]:
        what = _("%s: Nothing says what comes back.") % names_text(silent)
        line = _("In code: the type that the function returns, such as a dataclass")
        yield _finding("output-schema", Grade.ADVICE, CHATGPT, what, line)
    for each in lint.server_findings(server, tools):
        if each.rule in ("tools-many", "tokens-many-in-all"):
            yield _finding(each.rule, Grade.ADVICE, BOTH, each.message)
