# `make run` and `make test` are all that a fresh checkout needs; README has the rest.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PORT ?= 8000
SERVER ?= daphne
# Of two processors: much of what tests do is to wait for each other's servers.
WORKERS ?= 4

# The first Python that is new enough; `make PYTHON=...` for another.
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$name && break; done)

VENV := $(CURDIR)/.venv
REQUIREMENTS := requirements.txt requirements-test.txt requirements-mysql.txt
# The files' content names the stamp: a checkout says nothing by its times.
VENV_STAMP := .venv/installed-$(shell cat $(REQUIREMENTS) | cksum | cut -d' ' -f1)
NODE_STAMP := node_modules/installed-$(shell cat package-lock.json .npmrc | cksum | cut -d' ' -f1)

export PATH := $(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Print the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

.PHONY: venv
venv: $(VENV_STAMP) ## Make .venv with everything for running and testing.

$(VENV_STAMP):
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and none was found. Name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Installing what is needed into .venv: a minute or two, once."
	@$(PYTHON) -m venv .venv
	@rm -f .venv/installed-*
	@.venv/bin/pip install --quiet -r requirements.txt -r requirements-test.txt
	@.venv/bin/pip install --quiet -r requirements-mysql.txt > .venv/mysqlclient.log 2>&1 \
		|| echo "mysqlclient was not built (.venv/mysqlclient.log says why), so MySQL and MariaDB cannot be used."
	@touch $@

.PHONY: node
node: $(NODE_STAMP) ## Install the node programs that the tests drive.

$(NODE_STAMP): $(VENV_STAMP)
	@echo "Installing the node programs of the tests into node_modules."
	@npm ci --loglevel=error
	@touch $@

.PHONY: run
run: $(VENV_STAMP) ## Serve the demo on 127.0.0.1 (PORT=8000).
	@python -m mcp_project.port "$(PORT)"
	@python manage.py migrate --verbosity 0
	@python manage.py mcp_demo
	@echo
	@echo "MCP endpoint   http://127.0.0.1:$(PORT)/mcp"
	@echo "Admin          http://127.0.0.1:$(PORT)/admin/"
	@echo "Connect        claude mcp add --transport http demo http://127.0.0.1:$(PORT)/mcp"
	@echo
	@echo "Ctrl+C stops it."
	@exec python -m daphne -b 127.0.0.1 -p $(PORT) --verbosity 0 mcp_project.asgi:application

.PHONY: conformance-server
conformance-server: $(VENV_STAMP) ## Serve the fixture set at /mcp (PORT, SERVER, MOUNT, DATABASE_URL, REDIS_URL, NTOOLS, WIRE).
	@PORT=$(PORT) SERVER=$(SERVER) exec python -m tests.drill.serve

.PHONY: bench
bench: $(VENV_STAMP) ## Run the benchmarks; print ratios against the floors.
	@python -m benchmarks

.PHONY: pictures
pictures: $(VENV_STAMP) $(NODE_STAMP) ## Take the pictures of docs/admin.md anew.
	@PICTURES=docs/images pytest -q tests/browser/test_publishing.py tests/browser/test_live.py tests/browser/test_tokens.py tests/browser/test_calls.py tests/browser/test_who.py tests/browser/test_stops.py

ROUNDS ?= 1000

.PHONY: reliability
reliability: $(VENV_STAMP) ## Try for long what is promised (ROUNDS=1000, PART=changes, log or security).
	@python -m benchmarks.reliability --rounds $(ROUNDS) $(addprefix --part ,$(PART))

EXCHANGES ?= 1000
SEED ?= 1

.PHONY: differential
differential: $(VENV_STAMP) ## Compare answers with the official SDK's (EXCHANGES=1000, SEED=1).
	@python -m tests.differential --exchanges $(EXCHANGES) --seed $(SEED)

.PHONY: migrations
migrations: $(VENV_STAMP) ## Write the migrations that changed models need.
	@python manage.py makemigrations mcp_app
	@DJANGO_SETTINGS_MODULE=tests.settings python manage.py makemigrations drill

.PHONY: format
format: $(VENV_STAMP) ## Format the code and sort its imports.
	@ruff check --fix-only --quiet .
	@ruff format .

# $(call part,name,command): run it, and keep how long it took.
SECONDS_FILE := results/seconds
define part
@printf '\n== %s\n' '$(1)' && begin=$$(date +%s) && $(2) && \
	printf '%4d s  %s\n' $$(( $$(date +%s) - begin )) '$(1)' >> $(SECONDS_FILE)
endef

# What a production deployment sets.
DEPLOYED := env DEBUG=off ALLOWED_HOSTS=mcp.example.com \
	CSRF_TRUSTED_ORIGINS=https://mcp.example.com \
	SECRET_KEY="$$(python -c 'import secrets; print(secrets.token_urlsafe(50))')" \
	SECURE_HSTS_INCLUDE_SUBDOMAINS=on SECURE_HSTS_PRELOAD=on \
	REDIS_URL=redis://127.0.0.1:6379/0 MCP_PUBLIC_URL=https://mcp.example.com/mcp

# Each process of the tests notes the secrets that it makes, and looks for them in what it writes.
SECRECY := results/secrecy
WATCHED := env SECRECY=$(SECRECY)

# tests/ordering.py says in which order, and why.
ORDERED := -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

.PHONY: test
test: $(VENV_STAMP) $(NODE_STAMP) ## Run the whole suite; REQUIRE_ALL=1 makes a skip a failure.
	@mkdir -p results && rm -f $(SECONDS_FILE)
	$(call part,ruff check,ruff check .)
	$(call part,ruff format,ruff format --check .)
	$(call part,mypy,mypy)
	$(call part,import-linter,lint-imports)
	$(call part,migrations,env DATABASE_URL=sqlite://:memory: DJANGO_SETTINGS_MODULE=tests.settings python manage.py makemigrations --check --dry-run)
	$(call part,check --deploy,$(DEPLOYED) python manage.py check --deploy --fail-level WARNING)
	$(call part,pytest,coverage erase && rm -rf $(SECRECY) && { $(WATCHED) coverage run -m pytest $(ORDERED) || $(WATCHED) python -m tests.once_more $$?; })
	$(call part,secrecy,$(WATCHED) python -m tests.secrecy)
	$(call part,coverage,coverage combine --quiet && coverage report)
	@printf '\nseconds per part\n'; cat $(SECONDS_FILE)

.PHONY: clean
clean: ## Remove everything that was made here, but not the database.
	rm -rf .venv node_modules results staticfiles .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage .coverage.*
