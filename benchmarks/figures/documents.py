"""What becomes of other people's OpenAPI documents, and what a search of them finds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, Final

from benchmarks.measuring import AtLeast, AtMost, Effort, Result
from benchmarks.openapi_documents import DIRECTORY, GITHUB, documents

LARGEST: Final = 256 * 1024 * 1024
SHARE: Final = 99.0
"""Percent of the operations that can be sent: with JSON, a form, a text or no body."""
FIRST: Final = 8
"""Tools of a search that a model is shown."""
RIGHT: Final = 32
QUESTIONS: Final = {
    "open a new issue": "issues_create",
    "list the branches of a repository": "repos_list_branches",
    "merge a pull request": "pulls_merge",
    "star a repository": "activity_star_repo_for_authenticated_user",
    "who are the contributors of a repository": "repos_list_contributors",
    "publish a release": "repos_create_release",
    "put a label on an issue": "issues_add_labels",
    "delete a branch": "git_delete_ref",
    "search in code": "search_code",
    "run the failed jobs of a workflow again": "actions_re_run_workflow_failed_jobs",
    "invite somebody to an organization": "orgs_create_invitation",
    "fork a repository": "repos_create_fork",
    "how many requests do I have left": "rate_limit_get",
    "show the readme": "repos_get_readme",
    "compare two commits": "repos_compare_commits_with_basehead",
    "secret scanning alerts of a repository": "secret_scanning_list_alerts_for_repo",
    "render markdown as HTML": "markdown_render",
    "create a gist": "gists_create",
    "who is in a team": "teams_list_members_in_org",
    "lock the conversation of an issue": "issues_lock",
    "make a new repository for me": "repos_create_for_authenticated_user",
    "remove a label from an issue": "issues_remove_label",
    "who reviewed a pull request": "pulls_list_reviews",
    "change the topics of a repository": "repos_replace_all_topics",
    "download the logs of a workflow run": "actions_download_workflow_run_logs",
    "comment on an issue": "issues_create_comment",
    "assign an issue to somebody": "issues_add_assignees",
    "list my notifications": "activity_list_notifications_for_authenticated_user",
    "block a user": "users_block",
    "traffic views of a repository": "repos_get_views",
    "get the contents of a file": "repos_get_content",
    "create a webhook for a repository": "repos_create_webhook",
    "dependabot alerts of a repository": "dependabot_list_alerts_for_repo",
    "cancel a workflow run": "actions_cancel_workflow_run",
    "follow a user": "users_follow",
    "add a collaborator": "repos_add_collaborator",
    "list tags": "repos_list_tags",
    "create a milestone": "issues_create_milestone",
    "delete a package": "packages_delete_package_for_authenticated_user",
    "upload a release asset": "repos_upload_release_asset",
}
"""Written before they were tried, with the operation that is meant."""


def of_other_people(_effort: Effort) -> Iterator[Result]:
    """Read every document; each schema must compile, and nothing else be raised."""
    _set_up()
    read, refused, sendable, made, errors = 0, 0, 0, 0, 0
    for archive, part in ((DIRECTORY, "/api/"), (GITHUB, "/api.github.com.json")):
        for name, content in documents(archive, part):
            try:
                counts = _counted(content)
            except Exception as error:
                errors += 1
                print(f"{name}: {error!r}"[:300], file=sys.stderr)
                continue
            read, refused = read + (counts is not None), refused + (counts is None)
            sendable, made = (
                now + more
                for now, more in zip((sendable, made), counts or (0, 0), strict=True)
            )
    yield Result(
        figure="documents that raise what is no DocumentError",
        measured=errors,
        bound=AtMost(0),
        raw=f"{read} read, {refused} refused with a sentence",
    )
    yield Result(
        figure="operations that can be sent, and are offered",
        measured=100 * made / sendable,
        bound=AtLeast(SHARE),
        unit="%",
        raw=f"{made:,} of {sendable:,}",
    )


def of_questions(_effort: Effort) -> Iterator[Result]:
    """Ask for tools of GitHub's by what they do."""
    _set_up()
    from mcp_app.catalog.search_index import SearchIndex  # noqa: PLC0415
    from mcp_app.interface.definitions import ToolDefinition  # noqa: PLC0415

    ((_name, content),) = documents(GITHUB, "/api.github.com.json")
    tools = [
        ToolDefinition(
            name=each.name,
            title=each.summary,
            description=each.description or each.summary,
            input_schema=each.input_schema,
        )
        for each in _offers(content)
    ]
    assert {*QUESTIONS.values()} <= {each.name for each in tools}
    index = SearchIndex(tools)
    right = 0
    for question, meant in QUESTIONS.items():
        places, _total = index.find(question, FIRST)
        hit = meant in [tools[place].name for place in places]
        right += hit
        if not hit:
            print(f"Not among the first: {question} ({meant})", file=sys.stderr)
    yield Result(
        figure=f"questions whose tool is among the first {FIRST}",
        measured=right,
        bound=AtLeast(RIGHT),
        raw=f"{right} of {len(QUESTIONS)}, in {len(tools):,} tools",
    )


def _set_up() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django  # noqa: PLC0415 - the figures before need no Django

    django.setup()


def _offers(content: bytes) -> list[Any]:
    from mcp_app.egress.sites import sites  # noqa: PLC0415
    from mcp_app.kinds.openapi.offers import offers_of  # noqa: PLC0415
    from mcp_app.kinds.openapi.reading import read_document  # noqa: PLC0415

    site = next(iter(sites().values()))
    return offers_of(read_document(content, LARGEST), site, LARGEST)


def _counted(content: bytes) -> tuple[int, int] | None:
    """Return how many operations can be sent, and how many of them are offered.

    None if the document is refused with a sentence.
    """
    from mcp_app.kinds.openapi import reading  # noqa: PLC0415
    from mcp_app.protocol import schemas  # noqa: PLC0415

    try:
        offers = _offers(content)
    except reading.DocumentError:
        return None
    paths = reading.read_document(content, LARGEST)["paths"]
    can = made = 0
    for each in offers:
        operation = paths[each.path].get(each.method.lower())
        if operation is not None and _can_be_sent(operation):
            can, made = can + 1, made + (not each.bar)
        if not each.bar:
            schemas.compile(each.input_schema)
    return can, made


def _can_be_sent(operation: Any) -> bool:
    """Whether its body, if there is one, is JSON or a form; references are left out."""
    body = operation.get("requestBody")
    if not isinstance(body, dict) or "content" not in body or not body["content"]:
        return body is None
    types = [each.partition(";")[0].strip() for each in body["content"]]
    return any(
        each.endswith("json") or each == "application/x-www-form-urlencoded"
        for each in types
    )
