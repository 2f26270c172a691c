# The example site. For a site of your own: its requirements in place of requirements.txt,
# its folders in place of mcp_project and templates (also in .dockerignore), and the name
# of its ASGI application in CMD.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
WORKDIR /app
ENV PATH=/opt/venv/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python3 -m venv /opt/venv
COPY requirements.txt requirements-deploy.txt ./
RUN pip install --no-cache-dir -r requirements.txt -r requirements-deploy.txt
COPY manage.py ./
COPY mcp_app mcp_app
COPY mcp_project mcp_project
COPY templates templates
# This key signs nothing. The keys of the site come when the image runs.
RUN SECRET_KEY=none python manage.py collectstatic --no-input --verbosity 0 \
    && python -m compileall -q mcp_app mcp_project && chmod -R a+rX .

FROM ${BASE}
WORKDIR /app
ENV PATH=/opt/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    PORT=8000 WEB_CONCURRENCY=1 \
    OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
# It writes to /tmp alone: the root may be read-only.
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['PORT'] + '/mcp/health', timeout=4)"]
# With MCP_TRACING, spans of all that runs here go where OTEL_* say. exec: signals arrive.
ENTRYPOINT ["sh", "-c", "exec ${MCP_TRACING:+opentelemetry-instrument} \"$@\"", "--"]
# No log of accesses: URLs of HTTP+SSE hold session ids, and the proxy has one.
CMD ["sh", "-c", "exec uvicorn mcp_project.asgi:application --host 0.0.0.0 --port $PORT --workers $WEB_CONCURRENCY --timeout-graceful-shutdown 30 --timeout-worker-healthcheck 60 --no-proxy-headers --no-access-log"]
