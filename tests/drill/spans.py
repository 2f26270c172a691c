"""Writes the spans of this process, each as a line of JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor


def write_spans(out: TextIO) -> None:
    exporter = ConsoleSpanExporter(
        out=out, formatter=lambda span: f"{span.to_json(indent=None)}\n"
    )
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


def write_spans_into(path: Path) -> None:
    write_spans(path.open("a", encoding="utf-8", buffering=1))
