"""The fixture server's Celery, where it runs tasks."""

from __future__ import annotations

from celery import Celery

app = Celery("drill")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
