"""`MCP["METRICS"]`: who may read the metrics, and how many names they tell apart.

If one option is wrong, a check says so, and nobody reads them until it is mended.
"""

from __future__ import annotations

import re
from typing import Self

from pydantic import BaseModel, Field, field_validator, model_validator

from mcp_app.conf import mcp_settings
from mcp_app.egress.sites import Networks, option_problems
from mcp_app.interface.errors import is_installed


class MetricsOptions(BaseModel, extra="forbid", strict=True):
    """The options; who reads shows the `token`, and comes from the `networks`."""

    token: str = Field("", min_length=16, repr=False)
    networks: Networks = []
    names: int = Field(500, ge=1)

    @field_validator("token")
    @classmethod
    def _check_token(cls, token: str) -> str:
        if not re.fullmatch("[!-~]*", token):
            # Such as the newline at the end of a file.
            raise ValueError("no header can show spaces, newlines or other letters")
        return token

    @model_validator(mode="after")
    def _check_readers(self) -> Self:
        if not self.token and not self.networks:
            raise ValueError('needs a "token" or "networks", or nobody may read them.')
        return self


def metrics_options() -> MetricsOptions | None:
    """Return the options in force, None where there are no metrics."""
    options = mcp_settings.metrics
    if options is None or not is_installed("prometheus_client"):
        return None
    is_wrong = any(option_problems("METRICS", MetricsOptions, options))
    return None if is_wrong else MetricsOptions.model_validate({**options})
