"""Secrets in log messages to clients."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import pytest
from orjson import Fragment

from mcp_app.interface.log_secrets import (
    BLOT,
    CALLS,
    FIELDS,
    MESSAGES,
    SURE,
    WARN_EVERY,
    LogSecrets,
    names_secret,
)
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.jsonrpc import UnserializableValue

SECRET: Final = """
    password Password user_password PASSWORD1 db.password passwords passwd pwd pin
    passphrase passcode passkey passkeys credentials card_number cardNumber cvc dsn salt
    user_pin pinCode jwt bearer token tokens access_token accessToken accesstoken cvv
    id-token csrftoken userAPIToken csrfmiddlewaretoken secret secrets clientSecret
    client_secret
    otp totp otps otp_code otpCode otp_seed mfa_code login_code reset_code backup_codes
    verification_code verificationCode invite_code auth_code
    api_key api_keys apiKey APIKey apikey apikeys X-Api-Key hapikey api_key_name
    private_key SECRET_KEY secretKey secretkey session_key sessionKey access_key
    access_key_id signing_key encryption_key ssh_key sshKeys privkey priv_key
    access_code activation_code security_code sms_code confirmationCode one_time_code
    smtp_pass db_pass psk passwort seed_phrase mnemonic security_answer webhook_url
    connection_string creds
"""
HEADERS: Final = """
    cookie cookies Cookie Set-Cookie sessionid X-Auth
    session_id PHPSESSID Mcp-Session-Id authorization Authorization Proxy-Authorization
    http.request.header.authorization
"""
FIELD: Final = "ping_key badge_key badgeKey service-keys licence_key2 order_key"
LOGGED: Final = "key keys key2 key_name session sessions"
SENT: Final = "appid sig code auth signature X-Signature X-Amz-Signature"
HARMLESS: Final = """
    keyboard monkey turkey hotkey keynote keyed tokenizer secretary obsession possess
    assess author authorized sessionless passwordless cookiecutter name id data user
    pinned spin pint opinion salted bearers_of otphone sign design country_code codes
    primary_key foreign_key sort_key public_key publicKey PrimaryKey Idempotency-Key
    partition_keys cache_key authentic app_id page_token nextPageToken next_tokens
"""

JWT: Final = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmVk-_Zw"
JWE: Final = "eyJhbGciOiJkaXIifQ..aXY.Y2lwaGVy.dGFn"
TOKEN: Final = "mcp_" + "aB3-_" * 9

TEXTS: Final[list[tuple[str, str]]] = [
    (TOKEN, BLOT),
    (TOKEN[:40], BLOT),
    (TOKEN[:39], TOKEN[:39]),
    (f"made {TOKEN}, for ana", f"made {BLOT}, for ana"),
    (f"x{TOKEN}", f"x{TOKEN}"),
    ("mcp_app.server has started, with four workers and a database", "=="),
    (JWT, BLOT),
    (JWE, BLOT),
    (f"id_token={JWT}; then {JWE};", f"id_token={BLOT}; then {BLOT};"),
    (f"notajwt{JWT}", "=="),
    ("Bearer abc", BLOT),
    ("Basic dXNlcjpwYXNz", BLOT),
    ("Bearer  abc and more", f"{BLOT} and more"),
    (" bearer hunter2", BLOT),
    (f"_mcp_{'a' * 43}", f"_{BLOT}"),
    ("Authorization: Bearer abcDEF123456 was sent", f"Authorization: {BLOT} was sent"),
    ("-H 'authorization: basic dXNlcjpwYXNz'", f"-H 'authorization: {BLOT}'"),
    ("The site uses basic authentication.", "=="),
    ("Now with Basic Authentication for staff", "=="),
    ("Bearer", "=="),
    ("", "=="),
    ("nothing secret", "=="),
]


def shown(data: Fragment) -> Any:
    return json.loads(jsonrpc.write(data))


def removed(data: object) -> Any:
    return shown(LogSecrets().remove_secrets(data))


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (SECRET, {SURE, FIELDS, MESSAGES, CALLS}),
        (HEADERS, {FIELDS, MESSAGES, CALLS}),
        (FIELD, {FIELDS, MESSAGES, CALLS}),
        (LOGGED, {MESSAGES, CALLS}),
        (SENT, {CALLS}),
        (HARMLESS, set()),
    ],
)
def test_names(names: str, found: set[object]) -> None:
    for among in (SURE, FIELDS, MESSAGES, CALLS):
        wrong = [
            n for n in names.split() if names_secret(n, "", among) != (among in found)
        ]
        assert wrong == [], among.pattern


def test_what_only_tells_of_a_secret() -> None:
    values = {"max_tokens": 5, "tokens_used": 0.5, "has_password": True, "secret": None}
    assert not any(names_secret(*each) for each in values.items())
    assert names_secret("pin", 1234)


def test_texts_that_are_secrets() -> None:
    found = [(text, removed(text)) for text, _ in TEXTS]
    assert found == [(text, text if clean == "==" else clean) for text, clean in TEXTS]


def test_they_are_found_at_any_depth_and_counted() -> None:
    secrets = LogSecrets()
    data = {
        "user": "ana",
        "Password": "hunter2",
        "steps": [{"headers": {"Authorization": ["Bearer x"], "Accept": "*/*"}}],
        "said": f"{JWT} {TOKEN}",
        TOKEN: {"api_key": {"deeper": [1, 2]}},
    }
    assert shown(secrets.remove_secrets(data)) == {
        "user": "ana",
        "Password": BLOT,
        "steps": [{"headers": {"Authorization": BLOT, "Accept": "*/*"}}],
        "said": f"{BLOT} {BLOT}",
        BLOT: {"api_key": BLOT},
    }
    assert secrets.count == 6
    deep: Any = {"password": "hunter2"}
    for _ in range(240):
        deep = [deep]
    assert "hunter2" not in str(shown(secrets.remove_secrets(deep)))
    assert secrets.count == 7


@dataclass
class Login:
    name: str
    password: str
    at: date


def test_objects_are_looked_at_as_clients_would_see_them() -> None:
    data = Login("ana", "hunter2", date(2026, 1, 2))
    assert removed(data) == {"name": "ana", "password": BLOT, "at": "2026-01-02"}
    assert removed(("Bearer x", {"Bearer y"})) == [BLOT, [BLOT]]


def test_other_data_stays_as_it_is() -> None:
    secrets = LogSecrets()
    nested = {"a": {"b": [1]}, "c": None}
    others: list[Any] = [None, True, 2**70, -0.5, "é\x1b", [], nested]
    for data in others:
        assert shown(secrets.remove_secrets(data)) == data
    assert secrets.count == 0


def test_how_many_there_are_is_no_secret() -> None:
    data = {
        **{"total_tokens": 512, "maxTokens": 5, "token_count": 7, "sessions": 3},
        **{"password_changed": True, "password": None},
    }
    assert removed(data) == data
    assert removed({"tokens": ["a"], "pin_password": 1234}) == {
        "tokens": BLOT,
        "pin_password": BLOT,
    }


def test_names_that_look_alike_afterwards_both_stay() -> None:
    shown = removed({"Bearer abc1": True, "Bearer abc2": False})
    assert sorted(shown.values()) == [False, True]


def test_numbers_beside_a_secret_stay_exact() -> None:
    data = {"n": 2**70, "x": 0.1, "token": 5}
    assert removed(data) == {"n": 2**70, "x": 0.1, "token": BLOT}


@pytest.mark.parametrize("data", [object(), float("nan"), "\ud800"])
def test_what_is_no_json_is_refused(data: object) -> None:
    with pytest.raises(UnserializableValue, match=r"^\$ "):
        LogSecrets().remove_secrets(data)


def test_the_log_tells_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    now = [100.0]
    secrets = LogSecrets(lambda: now[0])
    for seconds in (0, 0, WARN_EVERY - 1, 1, 30):
        now[0] += seconds
        secrets.remove_secrets({"password": "hunter2", "cookie": "a=b"})
    assert secrets.count == 10
    assert [each.levelname for each in caplog.records] == ["WARNING"] * 2
    first, second = [each.getMessage() for each in caplog.records]
    told = "Secrets were taken out of log messages to clients: {} so far."
    assert first.startswith(told.format(2))
    assert second.startswith(told.format(8))
    assert "hunter2" not in caplog.text


def test_threads_do_not_lose_a_count() -> None:
    secrets = LogSecrets()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: secrets.remove_secrets({"key": 1}), range(400)))
    assert secrets.count == 400


@pytest.mark.parametrize("part", ["eyJ-", "mcp_", "Bearer ", "basic\t", "token_", "a"])
def test_no_text_takes_for_ever(part: str) -> None:
    """Each of them would, if a long word were looked through again and again."""
    text = part * 20_000
    assert isinstance(removed({text: text}), dict)
