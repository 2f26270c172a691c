# `make run` and `make test` are all that a fresh checkout needs; README has the rest.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PORT ?= 8000
SERVER ?= daphne

# The first Python that is new enough; `make PYTHON=...` for another.
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$name && break; done)

VENV := $(CURDIR)/.venv
REQUIREMENTS := requirements.txt requirements-test.txt requirements-mysql.txt
# The files' content names the stamp: a checkout says nothing by its times.
VENV_STAMP := .venv/installed-$(shell cat $(REQUIREMENTS) | cksum | cut -d' ' -f1)
RUN_STAMP := .venv/installed-run-$(shell cksum < requirements.txt | cut -d' ' -f1)
PROJECT_STAMPS := .projects/wagtail/installed .projects/oscar/installed .projects/tenants/installed
NODE_STAMP := node_modules/installed-$(shell cat package-lock.json .npmrc | cksum | cut -d' ' -f1)

# Processes that run tests beside each other: many tests wait for programs that they started.
JOBS ?= 4
POSTGRES_TEST_URL ?= postgres://postgres@127.0.0.1
MYSQL_TEST_URL ?= mysql://root@127.0.0.1
ON_POSTGRESQL := DATABASE_URL=$(POSTGRES_TEST_URL)/postgres
ON_MARIADB := DATABASE_URL=$(MYSQL_TEST_URL)/mysql
# Where mysqlclient was not built, Django cannot begin; REQUIRE_ALL=1 lets that fail.
WITHOUT_MARIADB := [ "$${REQUIRE_ALL-}" != 1 ] && ! python -c "import MySQLdb" 2>/dev/null
# What locks rows: there, no other database is as SQLite is.
LOCKING := tests/api tests/audit tests/invalidation tests/streams tests/tasks tests/workbench $(wildcard tests/*/on_servers.py)
# What PostgreSQL alone takes of a site's SQL, such as a table as a whole row.
OWN_SQL := tests/kinds/query/test_own_sql.py

export PATH := $(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Print the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

.PHONY: venv
venv: $(VENV_STAMP) ## Make .venv with everything for running and testing.

$(VENV_STAMP): | $(RUN_STAMP)
	@echo "Installing what the tests need into .venv: a minute or two, once."
	@.venv/bin/pip install --quiet -r requirements.txt -r requirements-test.txt
	@.venv/bin/pip install --quiet -r requirements-mysql.txt > .venv/mysqlclient.log 2>&1 \
		|| echo "mysqlclient was not built (.venv/mysqlclient.log says why), so MySQL and MariaDB cannot be used."
	@rm -f .venv/installed-* && touch $(RUN_STAMP) $@

# Only what the project runs on.
$(RUN_STAMP):
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and none was found. Name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: $(PYTHON) is not. Name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@test -w . || { echo "This folder cannot be written, and everything is installed into it: $(CURDIR)" >&2; exit 1; }
	@mkdir .venv.lock 2>/dev/null || { echo "Another make is installing into .venv. Wait for it. If there is none, delete the folder .venv.lock." >&2; exit 1; }; \
	trap 'rmdir .venv.lock' EXIT; \
	echo "Making a virtual environment in .venv."; \
	$(PYTHON) -m venv .venv; \
	echo "Installing Django and what the project runs on: half a minute, once."; \
	.venv/bin/pip install --quiet -r requirements.txt 2> .venv/pip.log \
		|| { tail -n 3 .venv/pip.log >&2; echo "pip could not install requirements.txt; .venv/pip.log has the whole message. Check the network, then run make again." >&2; exit 1; }; \
	rm -f .venv/installed-*; touch $@

.PHONY: node
node: $(NODE_STAMP) ## Install the node programs that the tests drive.

$(NODE_STAMP): $(VENV_STAMP)
	@echo "Installing the node programs of the tests into node_modules."
	@npm ci --loglevel=error
	@touch $@

# What needs them is skipped without them, and named at the end.
.PHONY: node-if-possible
node-if-possible: $(VENV_STAMP)
	@$(MAKE) --no-print-directory node || echo "The node programs of the tests were not installed."

.PHONY: run
run: $(RUN_STAMP) ## Serve the demo on 127.0.0.1 (PORT=8000).
	@exec python -m mcp_project.start "$(PORT)"

.PHONY: conformance-server
conformance-server: $(VENV_STAMP) ## Serve the fixture set at /mcp (PORT, SERVER, MOUNT, DATABASE_URL, REDIS_URL, NTOOLS, WIRE).
	@PORT=$(PORT) SERVER=$(SERVER) exec python -m tests.drill.serve

.PHONY: bench
bench: $(VENV_STAMP) ## Run the benchmarks; print ratios against the floors.
	@python -m benchmarks

.PHONY: clients
clients: $(VENV_STAMP) ## Drive the clients of docs/clients.md, each installed into .clients; print its tables (CLIENTS="langchain mcp-use").
	@python -m benchmarks.clients $(CLIENTS)

.PHONY: pictures
pictures: $(VENV_STAMP) $(NODE_STAMP) ## Take the pictures of docs/admin.md anew.
	@PICTURES=docs/images pytest -q tests/browser/test_home.py tests/browser/test_publishing.py tests/browser/test_live.py tests/browser/test_tokens.py tests/browser/test_calls.py tests/browser/test_who.py tests/browser/test_stops.py tests/browser/test_query.py 'tests/browser/test_stories.py::test_one_part_pasted_from_a_browser[mouse]' tests/browser/test_openapi.py tests/browser/test_connect.py tests/browser/test_trying.py tests/browser/test_checking.py

HEALTHY_RUNS ?= 10

.PHONY: proxies
proxies: $(VENV_STAMP) ## Hold mcp_check against each server behind each proxy, healthy and not (HEALTHY_RUNS=10).
	@HEALTHY_RUNS=$(HEALTHY_RUNS) pytest -q tests/process/test_proxies.py tests/process/test_site_faults.py

ROUNDS ?= 1000

.PHONY: reliability
reliability: $(VENV_STAMP) ## Try for long what is promised (ROUNDS=1000, PART=changes, log, security or events).
	@python -m tests.reliability --rounds $(ROUNDS) $(addprefix --part ,$(PART))

KILLS ?= 20
DEPLOYS ?= 3

.PHONY: task-kills
task-kills: $(VENV_STAMP) ## Kill and restart what runs tasks, and print what became of them (KILLS=20, DEPLOYS=3, WHO="web worker").
	@python -m tests.tasks --kills $(KILLS) --deploys $(DEPLOYS) $(if $(WHO),--who $(WHO))

MUTATIONS ?= 100000
SEED ?= 1

.PHONY: mutations
mutations: $(VENV_STAMP) ## Send messages that are nearly those of the official schemas (MUTATIONS=100000, SEED=1).
	@MUTATIONS=$(MUTATIONS) SEED=$(SEED) pytest -q -o faulthandler_timeout=0 tests/attacks/test_t12_mutations.py

QUERIES ?= 20000

# Half of them are rows and half groups, and for half of them hidden rows change or go.
# A test of this length may take longer than one of the suite.
.PHONY: queries
queries: $(VENV_STAMP) ## Compare random queries and calls of model tools with what they mean (QUERIES=20000, JOBS=4, DATABASE_URL).
	@QUERY_EXAMPLES=$$(( ($(QUERIES) + 1) / 2 )) pytest -q -n $(JOBS) -o faulthandler_timeout=0 tests/kinds/query/test_scoping.py tests/kinds/query/test_hidden_rows.py tests/toolsets/test_models.py -k "those_of_the_scope or change_no_answer"

FUZZ_STAMP := .venv/fuzz-$(shell cksum < requirements-fuzz.txt | cut -d' ' -f1)
SECONDS ?= 600

$(FUZZ_STAMP): $(VENV_STAMP)
	@.venv/bin/pip install --quiet -r requirements-fuzz.txt
	@touch $@

.PHONY: fuzz
fuzz: $(FUZZ_STAMP) ## Give random input to all parsers, for a while each (SECONDS=600, TARGETS="json headers").
	@python -m benchmarks.fuzzing --seconds $(SECONDS) $(TARGETS)

.PHONY: migrations
migrations: $(VENV_STAMP) ## Write the migrations that changed models need.
	@python manage.py makemigrations mcp_app
	@DJANGO_SETTINGS_MODULE=tests.settings python manage.py makemigrations drill

.PHONY: messages
messages: $(VENV_STAMP) ## Write the catalog of messages for translators (needs gettext).
	@mkdir -p mcp_app/locale
	@cd mcp_app && python -m django makemessages --locale en --add-location file --no-wrap --no-obsolete

DOCS_STAMP := .venv-docs/installed-$(shell cksum < requirements-docs.txt | cut -d' ' -f1)

$(DOCS_STAMP):
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and none was found. Name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -m venv .venv-docs
	@rm -f .venv-docs/installed-*
	@.venv-docs/bin/pip install --quiet -r requirements-docs.txt
	@touch $@

.PHONY: docs
docs: $(DOCS_STAMP) ## Write the pages of docs/ as a site to site/.
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict
	@echo "The site is in site/: open site/index.html, or run .venv-docs/bin/mkdocs serve."

BASE ?= python:3.13-slim
IMAGE ?= django-mcp-app
# Docker where its daemon answers, unless this names buildah; else buildah.
BUILDAH ?=
# What pip is told on this machine is lent to the build, and is not in the image.
LENT := $(foreach path,$(wildcard /etc/pip.conf /etc/ssl/certs),--volume $(path):$(path):ro)
APT_SOURCES = $(firstword $(wildcard $(addprefix /etc/apt/,sources.list.d/debian.sources sources.list.d/ubuntu.sources sources.list)))

.PHONY: image
image: ## Build the image of the example site (BASE=python:3.13-slim, IMAGE=django-mcp-app).
	@if [ -z "$(BUILDAH)" ] && docker info > /dev/null 2>&1; \
	then docker build --build-arg BASE=$(BASE) --tag $(IMAGE) .; \
	elif [ -z "$(BUILDAH)" ] && ! command -v buildah > /dev/null; \
	then echo "No daemon of Docker answers, and there is no buildah: start the one, or install the other." >&2; exit 1; \
	else $(or $(BUILDAH),buildah) build --isolation chroot --format docker $(LENT) --build-arg BASE=$(BASE) --tag $(IMAGE) .; fi

.PHONY: image-base
image-base: ## Make a base for it of packages of this Debian or Ubuntu (BASE=localhost/python), where none can be pulled.
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; . /etc/os-release; \
	mmdebstrap --quiet --variant=minbase --include=ca-certificates,python3-venv "$$VERSION_CODENAME" "$$folder/base.tar" $(APT_SOURCES); \
	printf 'FROM scratch\nADD base.tar /\n' > "$$folder/Dockerfile"; \
	$(or $(BUILDAH),buildah) build --quiet --tag $(BASE) "$$folder"

.PHONY: image-check
image-check: $(VENV_STAMP) ## Build the image from nothing and run it: migrate, serve, a call, SIGTERM (BASE=...).
	@pytest -q tests/newcomer/test_image.py

.PHONY: audit
audit: $(VENV_STAMP) ## Look up known holes in all pins; fails if no database answers, too.
	pip-audit --strict --no-deps --disable-pip $(addprefix -r ,$(wildcard requirements*.txt))
	npm audit --package-lock-only

.PHONY: matrix
matrix: $(VENV_STAMP) ## Run the tests without programs on each Python and Django (PYTHONS="3.13 3.14").
	@nox $(if $(PYTHONS),--error-on-missing-interpreters --python $(PYTHONS))

.PHONY: format
format: $(VENV_STAMP) ## Format the code and sort its imports.
	@ruff check --fix-only --quiet .
	@ruff format .

.PHONY: lint
lint: $(VENV_STAMP) ## Check format, imports and types.
	@ruff check .
	@ruff format --check .
	@lint-imports
	@mypy
	@hadolint Dockerfile

.PHONY: check
check: lint ## The same, and what Django says of the migrations and of a deployment.
	@DATABASE_URL=sqlite://:memory: python manage.py makemigrations --check --dry-run
	@DATABASE_URL=sqlite://:memory: DJANGO_SETTINGS_MODULE=tests.settings python manage.py makemigrations --check --dry-run
	@DEBUG=off ALLOWED_HOSTS=mcp.example.com CSRF_TRUSTED_ORIGINS=https://mcp.example.com \
		SECRET_KEY=$$(python -c 'import secrets; print(secrets.token_urlsafe(50))') \
		SECURE_HSTS_INCLUDE_SUBDOMAINS=on SECURE_HSTS_PRELOAD=on \
		REDIS_URL=redis://127.0.0.1:6379/0 MCP_PUBLIC_URL=https://mcp.example.com/mcp \
		python manage.py check --deploy --fail-level WARNING

.PHONY: test
test: check node-if-possible ## Run what a change can break (REQUIRE_ALL=1, JOBS=4).
	pytest -n $(JOBS) -m "not long"
	$(ON_POSTGRESQL) pytest -n $(JOBS) -m "databases and not long" $(LOCKING) $(OWN_SQL) $(wildcard tests/*/on_postgresql.py)
	{ $(WITHOUT_MARIADB); } || $(ON_MARIADB) pytest -n $(JOBS) -m "databases and not long" $(LOCKING) $(wildcard tests/*/on_mysql.py)

.PHONY: projects
projects: $(PROJECT_STAMPS) ## Make environments with Wagtail, django-oscar and django-tenants, to which tests add the app.

.projects/%/installed: requirements-%.txt requirements.txt | $(RUN_STAMP)
	@echo "Installing $* into .projects/$*."
	@$(PYTHON) -m venv .projects/$*
	@.projects/$*/bin/pip install --quiet -r $<
	@touch $@

# What needs them is skipped without them, and named at the end.
.PHONY: projects-if-possible
projects-if-possible:
	@$(MAKE) --no-print-directory projects || echo "The projects that tests add the app to were not made."

.PHONY: test-all
test-all: check docs node-if-possible projects-if-possible coverage ## Run everything: all databases, servers and clients, coverage, secrets.
	SECRECY=results/secrecy pytest -n $(JOBS) -m programs
	python -m tests.secrecy
	$(ON_POSTGRESQL) pytest -n $(JOBS) -m databases
	{ $(WITHOUT_MARIADB); } || $(ON_MARIADB) pytest -n $(JOBS) -m databases
	python -m tests.conformance.proving --all -j $(JOBS)
	python -m tests.reliability --rounds 5 --seed 1

.PHONY: release
release: $(VENV_STAMP) ## Check a version, build it into dist/, and tag it (VERSION=0.1.0).
	@.ci/release "$(VERSION)"

.PHONY: coverage
coverage: $(VENV_STAMP) ## Measure the branches that the tests without programs take, with all cases.
	rm -rf results/secrecy
	coverage erase
	SECRECY=results/secrecy coverage run -m pytest -n $(JOBS) -m "not programs"
	coverage combine --quiet
	coverage report

.PHONY: clean
clean: ## Remove everything that was made here, but not the database.
	rm -rf .venv .venv-docs .projects .clients .nox node_modules results dist site staticfiles .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage .coverage.*
