"""System checks: errors are for what cannot run, warnings for what is unsafe.

Under `check --deploy --tag mcp` the unsafe settings are errors.  What lint finds has
the number of its rule: W110 must be fixed before publishing, I110 is advice.  Only
`check` reports advice.
"""

from __future__ import annotations

from django.core import checks

from mcp_app.checks.definitions import (
    check_access,
    check_approvals,
    check_definitions,
    check_open_models,
    check_permissions,
    check_public_servers,
    check_rows,
    check_rules,
    check_tasks,
)
from mcp_app.checks.deployment import check_databases, check_deployment, check_hosts
from mcp_app.checks.modules import check_admin_site, check_modules, check_toolsets
from mcp_app.checks.settings import check_settings, check_sign_in

TAG = "mcp"
OF_DATABASES = (TAG, checks.Tags.database)
"""Since Django 6.1 checks with the second tag run only if a database is named."""

checks.register(check_settings, TAG)
checks.register(check_sign_in, TAG)
checks.register(check_modules, TAG)
checks.register(check_toolsets, TAG)
checks.register(check_admin_site, TAG)
checks.register(check_permissions, TAG)
checks.register(check_rules, TAG)
checks.register(check_open_models, TAG)
checks.register(check_approvals, TAG)
checks.register(check_hosts, TAG)
checks.register(check_deployment, TAG, deploy=True)
checks.register(check_tasks, TAG, deploy=True)
checks.register(check_definitions, TAG)
checks.register(check_access, *OF_DATABASES)
checks.register(check_public_servers, *OF_DATABASES, deploy=True)
checks.register(check_databases, *OF_DATABASES)
checks.register(check_rows, *OF_DATABASES)
