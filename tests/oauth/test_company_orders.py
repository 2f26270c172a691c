"""Companies that let people in, while all else happens in random orders."""

from __future__ import annotations

import random
from asyncio import gather
from types import SimpleNamespace as App
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import override_settings

from mcp_app.account.token_issuance import end_token, forget_token
from mcp_app.auth.rights import Choice, change_app, expired_apps
from mcp_app.auth.token_cache import oauth, token_cache
from mcp_app.interface import principal as whom
from mcp_app.models import AccessToken, Server
from mcp_app.protocol.headers import Headers
from tests.marks import long_cases
from tests.oauth.program import ORIGIN
from tests.oauth.test_companies import BOTH, LONG_AGO, Acme, acme
from tests.published import published

__all__ = ["acme"]
READ, CHANGE = BOTH.split()
SCOPES: Final = {"": set[str](), "read": {READ}, "change": {READ, CHANGE}}
SERVERS: Final = ["support", "sales"]
CHANGES: Final = {"may": "read", "tags": "orders", "until": LONG_AGO}
OFTEN: Final = 16 * ["exchange"] + 2 * ["program", "forget", "settings", "settings"]
PEOPLE, FOR_GOOD = {"person", "staff"}, {"person", "staff", "until"}
STEPS: Final = [*OFTEN, *CHANGES, *sorted(PEOPLE), "janitor", "idle", "user"]


class Orders:
    def __init__(self, acme: Acme, chance: random.Random, seen: set[str]) -> None:
        self.acme, self.pick, self.seen = acme, chance.choice, seen
        *self.people, self.kim = map(User.objects.create_user, ["ana", "bert", "kim"])
        self.apps, self.keys, self.used = dict[Any, Any](), dict[str, Any](), set[str]()
        self.settings()

    def settings(self) -> None:
        self.may = self.pick(["read", "change", "change", "read", ""])
        self.servers = self.pick([SERVERS, SERVERS, SERVERS, ["sales"]])
        self.acme.enter(may=self.may or "read", servers=self.servers)
        if not self.may:
            self.acme.settings.MCP = {**self.acme.settings.MCP, "OAUTH": {}}

    def exchange(self) -> None:
        user, slug = key = self.pick(self.people), self.pick(["support", *SERVERS])
        claimed, asked = (self.pick(["", READ, CHANGE, BOTH, BOTH]) for _ in SERVERS)
        named, jti = self.pick([slug, slug, "", *SERVERS]), self.pick("abcdefghijkl")
        claims = {"sub": user.username, "resource": f"{ORIGIN}/mcp/{slug}"}
        claims["jti"], mint = f"{self.kim.pk} {jti}", self.acme.issuer.id_jag
        form = {"scope": asked, "resource": named and f"{ORIGIN}/mcp/{named}"}
        answer = self.acme.send(mint(scope=claimed or None, **claims), **form).json()
        new = {"may": self.may, "tags": "", "until": None}
        app = self.apps.get(key) or App(has=new, usual=new, ends=set(), keys=set())
        scopes = SCOPES[self.may] & SCOPES[app.has["may"]]
        scopes &= {*(claimed or READ).split()} & {*(asked or BOTH).split()}
        is_out = not user.is_active or app.ends & FOR_GOOD
        errors = {
            "unsupported_grant_type": not self.may,
            "invalid_target": named not in ("", slug) or slug not in self.servers,
            "invalid_grant": is_out or jti in self.used,
            "invalid_scope": not scopes,
        }
        due, said = [each for each in errors if errors[each]], answer.get("error")
        assert said in due if due else {*answer["scope"].split()} == scopes, app.ends
        self.seen |= {said or answer["scope"], *app.ends}
        if secret := answer.get("access_token"):
            # If it comes back, then without what it had.
            app.keys, app.ends = {secret, *(() if app.ends else app.keys)}, set()
            self.apps[key], self.keys[secret] = app, (app, CHANGE in scopes)
            app.key, self.used = key, {*self.used, jti}

    def janitor(self) -> None:
        """Let 90 days go by for all that has ended."""
        AccessToken.objects.exclude(revoked=None).update(revoked=LONG_AGO)
        for rows in expired_apps():
            rows.remove()
        for app in [*self.apps.values()]:
            if app.ends and not app.ends & PEOPLE and app.has == app.usual:
                self.apps.pop(app.key).keys = set()

    def happen(self, step: str, app: Any) -> None:
        user, slug = app.key
        row = AccessToken.objects.get(user=user, servers__slug=slug)
        if step in PEOPLE:
            end_token(user if step == "person" else self.kim, row)
        elif step == "idle":
            AccessToken.objects.move_end(row.pk, LONG_AGO)
        elif step == "program":
            self.acme.program.post("revoke", token=self.pick([*app.keys]))
        elif step == "user":
            user.is_active = not user.is_active
            user.save()
        elif step == "forget" and app.ends:
            forget_token(user, row)
            self.apps.pop(app.key).keys = set()
        elif step in CHANGES and not app.ends:
            app.has = {**app.has, step: CHANGES[step]}
            change_app(row.connection, lambda _: Choice(name=row.name, **app.has))
            app.ends |= {step} & {"until"}
        app.ends |= {step} & {*PEOPLE, "idle", "program"}

    async def check(self) -> None:
        token_cache.forget_all()
        await gather(*map(self.check_key, self.keys))

    async def check_key(self, secret: str) -> None:
        """Hold what the authenticator says of a key against what must hold."""
        (app, changes), server = self.keys[secret], self.pick(SERVERS)
        headers = Headers([(b"authorization", f"Bearer {secret}".encode())])
        parts: Any = {"headers": headers, "host": "a", "path": "/", "server": server}
        try:
            found = await oauth(whom.AuthenticationRequest(**parts))
        except whom.AuthenticationFailed:
            found = None
        reads, tags = app.has["may"] == "read", frozenset(app.has["tags"].split())
        scope = whom.Scope(read_only=reads or not changes, tags=tags)
        is_good = secret in app.keys and not app.ends and app.key[0].is_active
        due = (str(app.key[0].pk), scope) if is_good and server == app.key[1] else None
        assert (found and (found.user_id, found.scope or whom.Scope())) == due


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", long_cases(*range(8)))
def test_no_key_may_more_than_the_least(acme: Acme, seed: int) -> None:
    published(Server(slug="sales", access="oauth token"))
    chance, seen = random.Random(seed), set[str]()  # noqa: S311 - no secret
    for _ in range(250):
        User.objects.all().delete()
        with override_settings(MCP=acme.settings.MCP):
            world = Orders(acme, chance, seen)
            for step in chance.choices(STEPS, k=20):
                if step in ("exchange", "janitor", "settings"):
                    getattr(world, step)()
                elif world.apps:
                    world.happen(step, chance.choice([*world.apps.values()]))
                async_to_sync(world.check)()
    assert len(seen) == 12, seen
