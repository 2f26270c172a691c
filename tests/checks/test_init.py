from __future__ import annotations

from collections.abc import Iterator
from inspect import signature

import pytest
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from mcp_app.checks import TAG, definitions, deployment, modules, settings


@pytest.fixture
def unsafe() -> Iterator[None]:
    with override_settings(ALLOWED_HOSTS=["*"], MCP={"TREADS": 1}):
        yield


@pytest.mark.usefixtures("unsafe")
def test_the_command_runs_them_by_their_tag(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("check", tags=[TAG])
    assert "Did you mean 'THREADS'?" in capsys.readouterr().err
    with pytest.raises(SystemCheckError, match=r"mcp_app\.E005"):
        call_command("check", tags=[TAG], deploy=True)


def test_each_function_that_checks_is_registered() -> None:
    """A function of a module is no check until the package registers it."""
    registered = checks.registry.registry.get_checks(include_deployment_checks=True)
    ours_in = (definitions, deployment, modules, settings)
    named = [vars(each).items() for each in ours_in]
    ours = {
        each for names in named for name, each in names if name.startswith("check_")
    }
    assert len(ours) == 17
    assert ours == {each for each in registered if TAG in each.tags}


def test_checks_of_databases_have_the_tag_of_databases() -> None:
    """Since Django 6.1 the other checks run with all databases, named or not."""
    registered = checks.registry.registry.get_checks(include_deployment_checks=True)
    ours = [each for each in registered if TAG in each.tags]
    asking = {each for each in ours if "databases" in signature(each).parameters}
    assert asking == {each for each in ours if checks.Tags.database in each.tags}
    assert len(asking) == 4
