"""The supplier of the demo: another site that the demo serves itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from mcp_app.egress.sites import setting_problems
from mcp_project.shop.supplier_key import HEADER, NAME, supplier_setting
from tests.newcomer.programs import CHECKOUT

SCRIPT: Final = """
import json, os
import django
django.setup()
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from mcp_project.shop.models import Delivery, Product
call_command("migrate", verbosity=0)
Product.objects.create(sku="KET-1", name="Kettle", price="40.00", stock=1)
key = settings.MCP["HTTP"]["supplier"]["secret_headers"]
ours = Client(headers=key)
def order(client, **given):
    return client.post("/supplier/orders", given, content_type="application/json")
answers = {
    "article": ours.get("/supplier/articles/ket-1").json(),
    "without": Client().get("/supplier/articles/ket-1").status_code,
    "missing": ours.get("/supplier/articles/none").status_code,
    "order": order(ours, sku="KET-1", quantity=5).json(),
    "none": order(ours, sku="none", quantity=5).status_code,
    "many": order(ours, sku="KET-1", quantity=5000).json(),
    "stranger": order(Client(), sku="KET-1", quantity=5).status_code,
    "deliveries": [str(each) for each in Delivery.objects.all()],
}
settings.MCP = {}
answers["off"] = ours.get("/supplier/articles/ket-1").status_code
print(json.dumps(answers))
"""


def test_the_supplier(tmp_path: Path) -> None:
    environment = {
        "DJANGO_SETTINGS_MODULE": "mcp_project.settings",
        "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
        "ALLOWED_HOSTS": "testserver",
        "DEBUG": "true",
        "MCP_HTTP": supplier_setting("http://127.0.0.1:8000"),
    }
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    answers = json.loads(ended.stdout)
    article = {"sku": "KET-1", "name": "Kettle", "price": "24.00", "delivery_days": 3}
    assert answers.pop("article") == {"article": article}
    order = {"number": 1, "sku": "KET-1", "quantity": 5}
    assert answers.pop("order") == {"order": order}
    assert answers.pop("many") == {"error": "The quantity must be from 1 to 1000."}
    assert answers == {
        "without": 401,
        "missing": 404,
        "none": 422,
        "stranger": 401,
        "deliveries": ["5 of Kettle"],
        "off": 404,
    }


def test_the_setting() -> None:
    first, second = (supplier_setting("http://127.0.0.1:8000") for _ in range(2))
    site = json.loads(first)
    assert [*setting_problems(site)] == []
    assert site[NAME]["url"] == "http://127.0.0.1:8000/supplier"
    # Each start has a key of its own.
    assert site[NAME]["secret_headers"][HEADER] not in second
