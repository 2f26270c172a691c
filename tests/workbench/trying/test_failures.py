"""Which errors there would not be in earnest."""

from __future__ import annotations

import asyncio

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from mcp_app.workbench.trying.dry_run_outcome import Remark, remark_on

pytestmark = pytest.mark.databases


@pytest.mark.django_db
def test_what_django_says_of_a_durable_block() -> None:
    with transaction.atomic(), pytest.raises(RuntimeError) as caught:
        transaction.atomic(durable=True).__enter__()
    # The transaction of the test itself does not count.
    assert remark_on(caught.value) is Remark.DURABLE


@pytest.mark.django_db(transaction=True)
def test_what_postgresql_says_after_an_error() -> None:
    if connection.vendor != "postgresql":
        return
    with pytest.raises(Exception) as caught, transaction.atomic():  # noqa: PT011, PT012
        with connection.cursor() as cursor:
            for _ in range(2):
                try:
                    cursor.execute("SELECT of_nothing")
                except Exception as error:
                    last = error
        raise last
    assert remark_on(caught.value) is Remark.ABORTED


def test_what_asyncio_says_of_another_loop() -> None:
    async def wait(future: asyncio.Future[None]) -> None:
        await future

    async def make() -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    future = asyncio.run(make())
    with pytest.raises(RuntimeError) as caught:
        asyncio.run(wait(future))
    assert remark_on(caught.value) is Remark.OTHER_LOOP


def test_what_a_loop_says_that_is_closed() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    with pytest.raises(RuntimeError) as caught:
        loop.call_soon(print)
    assert remark_on(caught.value) is Remark.OTHER_LOOP


def test_other_errors_are_as_in_earnest() -> None:
    assert remark_on(OperationalError("database is locked")) is Remark.LOCKED
    for error in (
        IntegrityError("UNIQUE constraint failed"),
        ValueError("database is locked"),
        RuntimeError("no"),
        OperationalError(),
    ):
        assert remark_on(error) is None
