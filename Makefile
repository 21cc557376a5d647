# How people work here. `make run` and `make test` do all the set-up they need.

PYTHON := .venv/bin/python
WORKERS ?= auto

.PHONY: help run test test-full check format bench bench-original docs install clean

help:
	@echo 'make run [ARGS="--model gpt-4o"]   start the interpreter'
	@echo 'make test                          run the tests'
	@echo 'make test-full                     and the soaks and repeats, which take long'
	@echo 'make check                         lint, types, import direction, generated docs'
	@echo 'make format                        lay the code out'
	@echo 'make docs                          write the generated pages anew'
	@echo 'make bench                         measure, against budgets and bare limits'
	@echo 'make bench-original                the same, with Open Interpreter 0.4.3 beside it'
	@echo 'make install                       make .venv with everything for development'
	@echo 'make clean                         remove everything that these recipes made'

run: .venv/.installed
	@.venv/bin/interpreter $(ARGS)

test: .venv/.installed system-packages
	$(PYTHON) -m pytest -n $(WORKERS) $(ARGS)

test-full: .venv/.installed system-packages
	$(PYTHON) -m pytest -n $(WORKERS) -m "not real_model" $(ARGS)

check: .venv/.installed
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) scripts/check_imports.py
	$(PYTHON) scripts/make_docs.py --check

format: .venv/.installed
	$(PYTHON) -m ruff check --fix --quiet . || true
	$(PYTHON) -m ruff format .

bench: .venv/.installed system-packages
	$(PYTHON) -m bench $(ARGS)

bench-original: .venv/.installed system-packages
	$(PYTHON) -m bench --original $(ARGS)

docs: .venv/.installed
	$(PYTHON) scripts/make_docs.py

install: .venv/.installed

.venv/.installed: pyproject.toml scripts/install.sh
	@sh scripts/install.sh

.PHONY: system-packages
system-packages:
	@sh scripts/system-packages.sh

clean:
	rm -rf .venv .bench .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +
