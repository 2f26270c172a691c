"""Tests of `mcp_app/oauth/clients.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event, Thread

import pytest
from django.contrib.auth.models import User

from mcp_app.oauth.clients import MAX_FETCHES_PER_MINUTE, Documents
from mcp_app.process import rates
from mcp_app.process.rates import MinuteLimit
from mcp_app.protocol.oauth.clients import ClientDocument
from mcp_app.protocol.oauth.requests import OAuthError


def test_each_person_has_a_limit() -> None:
    limit = MinuteLimit(2)
    assert [limit.count_attempt("ana", at) for at in (0, 1, 2, 59, 60.5)] == [
        *(True, True, False, False, True)
    ]
    assert limit.count_attempt("bert", 2)


def test_it_remembers_no_more_than_so_many_people() -> None:
    limit = MinuteLimit(1)
    for number in range(rates.MAX_KEYS + 2):
        assert limit.count_attempt(str(number), 0)
    assert len(limit._recent) <= rates.MAX_KEYS + 1


# -- documents -------------------------------------------------------------------------


URL = "https://program.example.com/client.json"
ANA, BERT = User(pk=1), User(pk=2)


@dataclass
class Web:
    """Where documents are, and a clock."""

    now: float = 0.0
    away: bool = False
    seconds: int = 60
    fetches: list[str] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def fetch(self, url: str) -> tuple[ClientDocument, int]:
        self.fetches.append(url)
        if self.away:
            raise OAuthError("invalid_client", "It is away.")
        document = ClientDocument(
            url=url,
            host="program.example.com",
            name="A program",
            redirects=("https://program.example.com/back",),
            grants=("authorization_code",),
        )
        return document, self.seconds


@pytest.fixture
def web() -> Web:
    return Web()


@pytest.fixture
def documents(web: Web) -> Documents:
    return Documents(web.fetch, web.clock)


def test_one_serves_as_long_as_it_says(documents: Documents, web: Web) -> None:
    for at, fetches in ((0, 1), (59, 1), (61, 2)):
        web.now = at
        assert documents.find_document(URL, ANA).url == URL
        assert len(web.fetches) == fetches


def test_a_lost_document_is_not_fetched_again(documents: Documents, web: Web) -> None:
    web.away = True
    for at, fetches in ((0, 1), (59, 1), (61, 2)):
        web.now = at
        with pytest.raises(OAuthError):
            documents.find_document(URL, ANA)
        assert len(web.fetches) == fetches


def test_one_that_was_read_serves_for_a_day(documents: Documents, web: Web) -> None:
    documents.find_document(URL, ANA)
    web.away, web.now = True, 80_000
    assert documents.find_document(URL, ANA).url == URL
    web.now = 86_500
    with pytest.raises(OAuthError):
        documents.find_document(URL, ANA)


def test_ten_a_minute_for_each_person(documents: Documents, web: Web) -> None:
    for number in range(MAX_FETCHES_PER_MINUTE):
        documents.find_document(f"{URL}?{number}", ANA)
    with pytest.raises(OAuthError, match="at the moment"):
        documents.find_document(URL, ANA)
    assert documents.find_document(URL, BERT).url == URL
    web.now = 61
    assert documents.find_document(f"{URL}?more", ANA).url == f"{URL}?more"
    assert len(web.fetches) == MAX_FETCHES_PER_MINUTE + 2


@pytest.mark.parametrize(
    "url",
    [
        "https://program.example.com/",
        "https://program.example.com/a/../client.json",
        "https://me@program.example.com/client.json",
        "https://program.example.com/client.json#x",
        "https://127.1/client.json",
    ],
)
def test_what_is_no_address_of_a_document_is_not_fetched(
    documents: Documents, web: Web, url: str
) -> None:
    with pytest.raises(OAuthError):
        documents.find_document(url, ANA)
    assert web.fetches == []


def test_a_slow_document_delays_nobody_else(web: Web) -> None:
    """Its own person waits; whoever points at another one does not."""
    begun, over = Event(), Event()

    def fetch(url: str) -> tuple[ClientDocument, int]:
        if "slow" in url:
            begun.set()
            over.wait(30)
        return web.fetch(url)

    documents = Documents(fetch, web.clock)
    slow = Thread(target=documents.find_document, args=(f"{URL}?slow", ANA))
    slow.start()
    try:
        assert begun.wait(30)
        assert documents.find_document(URL, BERT).url == URL
        # A document that the process has serves the one who waits, too.
        assert documents.find_document(URL, ANA).url == URL
        with pytest.raises(OAuthError, match="at the moment"):
            documents.find_document(f"{URL}?another", ANA)
    finally:
        over.set()
        slow.join(30)
