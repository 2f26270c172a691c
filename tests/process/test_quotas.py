"""What may be open and run of one caller, and of all who have not signed in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from mcp_app.conf import Limits
from mcp_app.interface.principal import Principal
from mcp_app.process.quotas import Quotas
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.listeners import Listeners

ANNA: Final = Principal(kind="user", user_id="1")
NOBODY: Final = Principal.ANONYMOUS
NEAR: Final = "@203.0.113.7"
FAR: Final = "@198.51.100.7"


class Site:
    """The quotas of a process whose calls and streams are counted here."""

    def __init__(self, *, signs_in: bool = True, **limits: Any) -> None:
        self.calls: dict[str, int] = {}
        self.listeners = Listeners()
        running: Any = SimpleNamespace(of=lambda owner: self.calls.get(owner, 0))
        catalogs: Any = SimpleNamespace(ask_to_sign_in=signs_in)
        self.quotas = Quotas(Limits(**limits), self.listeners, running, catalogs)

    def admits(self, principal: Principal, address: str = "", calls: int = 1) -> bool:
        try:
            self.quotas.admit(principal, address, calls)
        except Unavailable as error:
            return error.http_status != 429
        return True

    def listens(self, principal: Principal, address: str = "") -> int:
        """Open a stream; return 200, or the status of the refusal."""
        listener: Any = SimpleNamespace(
            principal=principal, owner=principal.owner, session=""
        )
        key: Any = _Hashable(listener)
        try:
            self.quotas.check_streams(key, address)
        except Unavailable as error:
            return error.http_status
        self.listeners.add(key, address)
        return 200


class _Hashable:
    def __init__(self, of: Any) -> None:
        self.__dict__.update(vars(of))


def test_running_calls_of_a_principal_and_of_an_address() -> None:
    site = Site(running_calls=3)
    site.calls = {ANNA.key: 2, NEAR: 3}
    assert site.admits(ANNA)
    assert not site.admits(ANNA, calls=2)
    assert not site.admits(NOBODY, NEAR)
    assert site.admits(NOBODY, FAR)
    # Whose address is not known shares no limit with others.
    assert site.admits(NOBODY, "", calls=100)


def test_streams_of_an_address() -> None:
    site = Site(streams_per_principal=2)
    assert [site.listens(NOBODY, NEAR) for _ in range(3)] == [200, 200, 429]
    assert site.listens(NOBODY, FAR) == 200
    assert site.listens(ANNA) == 200
    for each in site.listeners:
        site.listeners.discard(each)
    assert site.listens(NOBODY, NEAR) == 200


@pytest.mark.parametrize("signs_in", [True, False])
def test_t20_strangers_leave_half_of_the_streams_to_who_signs_in(
    signs_in: bool,
) -> None:
    site = Site(signs_in=signs_in, streams_per_process=6)
    opened = [site.listens(NOBODY) for _ in range(7)]
    assert opened == [200] * (3 if signs_in else 6) + [503] * (4 if signs_in else 1)
    assert site.listens(ANNA) == (200 if signs_in else 503)


def test_limits_are_switched_off() -> None:
    site = Site(rates=False, running_calls=1, streams_per_process=1)
    assert site.admits(ANNA, calls=10)
    assert [site.listens(NOBODY, NEAR) for _ in range(3)] == [200] * 3
