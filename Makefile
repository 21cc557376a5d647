# How people work here. `make run` installs what a chat needs; the other recipes install the development tools.

PYTHON := .venv/bin/python
# Tests wait more than they compute: one more than there are cores is the fastest. Each worker takes whole folders and
# steals from the others when it is done, so few modules are set up twice, and waits meet work.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# Small enough for every run: one for transport and guards, one for simple tasks.
TEST_MODELS ?= smollm2-135m qwen2.5-coder-0.5b

.PHONY: help run test test-full test-models check format bench bench-original eval eval-original compat docs docs-site screenshot corpus install clean

help:
	@echo 'make run [DIR=~/data] [ARGS="--model gpt-4o"]   start the interpreter, in that folder'
	@echo 'make test                          run the tests'
	@echo 'make test-full                     and the soaks and repeats, which take long'
	@echo 'make test-models                   the tests with real models, which are fetched once'
	@echo 'make check                         lint, types, import direction, generated docs, messages'
	@echo 'make format                        lay the code out'
	@echo 'make docs                          write the generated pages'
	@echo 'make docs-site                     build the documentation site in build/site, and check its links'
	@echo 'make screenshot [ARGS="undo"]       draw the screenshots in docs/images'
	@echo 'make corpus [ARGS=--all]           measure what the snippets of tests/policy/corpus do'
	@echo 'make bench                         measure, against budgets and bare limits'
	@echo 'make bench-original                the same, with Open Interpreter 0.4.3 beside it'
	@echo 'make eval [ARGS="--only csv"]      small tasks done by a local model, and which of them it did'
	@echo 'make eval-original                 the same, with Open Interpreter 0.4.3 beside it'
	@echo 'make compat [ARGS="--only streams"]  scripts written for 0.4.3, run on 0.4.3 and on ours'
	@echo 'make install                       make .venv with everything for development'
	@echo 'make clean                         remove everything that these recipes made'

run: .venv/.chat
	@$(if $(DIR),cd "$(patsubst ~%,$(HOME)%,$(DIR))" &&) "$(CURDIR)/.venv/bin/interpreter" $(ARGS)

test: .venv/.installed system-packages
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-full: .venv/.installed system-packages
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal -m "not real_model" $(ARGS)

test-models: .venv/.installed system-packages
	@timeout 600 $(PYTHON) scripts/fetch_test_models.py $(TEST_MODELS) || \
		echo 'Not every test model could be downloaded (see above); the tests that need them are skipped.'
	$(PYTHON) -m pytest -rs -m real_model tests/local_models $(ARGS)

check: .venv/.installed
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) scripts/check_imports.py
	$(PYTHON) scripts/make_docs.py --check
	$(PYTHON) scripts/check_size.py
	$(PYTHON) scripts/strings.py --class-names

format: .venv/.installed
	$(PYTHON) -m ruff check --fix --quiet . || true
	$(PYTHON) -m ruff format .

bench: .venv/.installed system-packages
	$(PYTHON) -m bench $(ARGS)

bench-original: .venv/.installed system-packages
	$(PYTHON) -m bench --original $(ARGS)

eval: .venv/.installed system-packages
	$(PYTHON) -m eval $(ARGS)

eval-original: .venv/.installed system-packages
	$(PYTHON) -m eval --original $(ARGS)

compat: .venv/.installed system-packages
	$(PYTHON) -m compat $(ARGS)

docs: .venv/.installed
	$(PYTHON) scripts/make_docs.py

docs-site: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict
	@echo 'The site is in build/site. To read it: python3 -m http.server --directory build/site'

screenshot: .venv/.installed
	$(PYTHON) scripts/screenshot.py $(ARGS)

corpus: .venv/.installed system-packages
	cd tests && PYTHONPATH=. ../$(PYTHON) -m policy.corpus.measure $(ARGS)
	cd tests && PYTHONPATH=. ../$(PYTHON) -m policy.corpus.forecast

install: .venv/.installed

.venv/.installed: pyproject.toml scripts/install.sh
	@sh scripts/install.sh dev

.venv/.chat: pyproject.toml scripts/install.sh
	@sh scripts/install.sh chat

.venv/.docs: .venv/.chat
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch .venv/.docs

.PHONY: system-packages
system-packages:
	@sh scripts/system-packages.sh

clean:
	rm -rf .venv .bench .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find src tests bench eval compat scripts -name __pycache__ -type d -prune -exec rm -rf {} +
