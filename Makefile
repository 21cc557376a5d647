# How people work here. `make run` and `make test` do all the set-up they need.

PYTHON := .venv/bin/python
WORKERS ?= auto

# Small enough for every run: one for transport and guards, one for simple tasks.
TEST_MODELS ?= smollm2-135m qwen2.5-coder-0.5b

.PHONY: help run test test-full test-models check format bench bench-original eval eval-original docs corpus install clean

help:
	@echo 'make run [ARGS="--model gpt-4o"]   start the interpreter'
	@echo 'make test                          run the tests'
	@echo 'make test-full                     and the soaks and repeats, which take long'
	@echo 'make test-models                   the tests with real models, which are fetched once'
	@echo 'make check                         lint, types, import direction, generated docs'
	@echo 'make format                        lay the code out'
	@echo 'make docs                          write the generated pages anew'
	@echo 'make corpus [ARGS=--all]           measure what the snippets of tests/policy/corpus do'
	@echo 'make bench                         measure, against budgets and bare limits'
	@echo 'make bench-original                the same, with Open Interpreter 0.4.3 beside it'
	@echo 'make eval [ARGS="--only csv"]      small tasks done by a local model, and which of them it did'
	@echo 'make eval-original                 the same, with Open Interpreter 0.4.3 beside it'
	@echo 'make install                       make .venv with everything for development'
	@echo 'make clean                         remove everything that these recipes made'

run: .venv/.installed
	@.venv/bin/interpreter $(ARGS)

test: .venv/.installed system-packages
	$(PYTHON) -m pytest -n $(WORKERS) $(ARGS)

test-full: .venv/.installed system-packages
	$(PYTHON) -m pytest -n $(WORKERS) -m "not real_model" $(ARGS)

test-models: .venv/.installed system-packages
	@timeout 600 $(PYTHON) scripts/fetch_test_models.py $(TEST_MODELS) || \
		echo 'Not every test model could be had (see above); the tests that need them are skipped.'
	$(PYTHON) -m pytest -rs -m real_model tests/local_models $(ARGS)

check: .venv/.installed
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) scripts/check_imports.py
	$(PYTHON) scripts/make_docs.py --check
	$(PYTHON) scripts/check_size.py

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

docs: .venv/.installed
	$(PYTHON) scripts/make_docs.py

corpus: .venv/.installed system-packages
	cd tests && PYTHONPATH=. ../$(PYTHON) -m policy.corpus.measure $(ARGS)

install: .venv/.installed

.venv/.installed: pyproject.toml scripts/install.sh
	@sh scripts/install.sh

.PHONY: system-packages
system-packages:
	@sh scripts/system-packages.sh

clean:
	rm -rf .venv .bench .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find src tests bench eval scripts -name __pycache__ -type d -prune -exec rm -rf {} +
