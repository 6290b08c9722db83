# Every target makes what it needs, from a bare Python: `make test PYTHON=python3.12` chooses which.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Installed first where torch is tested, so that no other build of it is pulled along.
TORCH ?= torch==2.13.0

# Where each step leaves what came of its tests: .ci/outcomes.py judges them together.
OUTCOMES = HEATPRIOR_OUTCOMES=out/outcomes/$@.json
# All extras but torch, whose oldest build brings gigabytes of CUDA.
LOWEST := formats,app,large,test

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo paper test quick test-app test-napari test-large test-torch test-deepinv oldest check docs wheel bench fuzz kills baseline clean same-python with-extras with-torch with-deepinv

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/installed-base ## Denoise a photograph: out/demo.png
	@$(BIN)/python examples/demo.py out

paper: $(VENV)/installed-base ## Make every figure and table of the paper and judge its claims (ARGS=--quick)
	$(BIN)/python -m paper $(ARGS)

test: $(VENV)/installed-test ## Run the tests on all cores (ARGS="-k name" is handed to pytest)
	$(OUTCOMES) $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

QUICK := tests/test_laws.py tests/test_quality.py tests/test_architecture.py tests/restoration/test_denoise.py
quick: $(VENV)/installed-test ## Run the laws and the main paths, in less than a minute
	$(BIN)/python -m pytest -n auto --dist worksteal $(QUICK) $(ARGS)

test-torch: ## Run the tests of heatprior.torch, and those that compare with torch, in an environment of their own
	@$(MAKE) --no-print-directory VENV=.venv-torch with-torch
	$(OUTCOMES) .venv-torch/bin/python -m pytest -n auto --dist worksteal tests/torch_modules tests/learning/test_score_matching.py $(ARGS)

test-deepinv: ## Run the tests of heatprior.deepinv in the environment of torch
	@$(MAKE) --no-print-directory VENV=.venv-torch with-deepinv
	$(OUTCOMES) .venv-torch/bin/python -m pytest -n auto --dist worksteal tests/deepinv_bridge $(ARGS)

# Old packages beside newer ones that they bring: what is deprecated between them is not ours to mend.
oldest: ## Run the kernels, the command line, formats, stores and the page with the lowest versions that are allowed
	@$(MAKE) --no-print-directory VENV=.venv-oldest .venv-oldest/lowest
	.venv-oldest/bin/python -m pytest -n auto --dist worksteal -W ignore::DeprecationWarning tests/kernels tests/cli tests/images tests/large tests/app \
		tests/test_files.py tests/test_images.py tests/test_store.py tests/test_store_saving.py $(ARGS)

# An environment of its own: what extras bring must not be what the rest leans on.
WITH_EXTRAS := tests/large tests/images tests/restoration/test_pipeline.py tests/restoration/test_restore.py tests/priors/test_wavelet.py
test-large: with-extras ## Run the tests of dask arrays, zarr stores, FITS, DICOM and NIfTI, and those that compare with other packages
	$(OUTCOMES) .venv-large/bin/python -m pytest $(WITH_EXTRAS) $(ARGS)

test-app: ## Test the page in a real Chromium, in an environment of its own
	@tests/browser/run "$(PYTHON)" $(ARGS)

test-napari: ## Test the napari plugin in a real viewer, in an environment of its own
	@plugins/napari-heatprior/run-tests "$(PYTHON)" $(ARGS)

check: $(VENV)/installed-check ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# The only network it needs is pip's: no inventories of other sites are fetched. Warnings are errors.
docs: ## Build the site, gallery included, in an environment of its own: out/site/index.html
	@$(MAKE) --no-print-directory VENV=.venv-docs .venv-docs/installed-docs
	.venv-docs/bin/codespell
	.venv-docs/bin/sphinx-build -W --keep-going -b html -d out/doctrees $(ARGS) docs out/site

# Empty but for what the wheel itself asks for; run from elsewhere, so that the sources cannot stand in for it.
wheel: ## Build wheel and source archive, check them, and denoise with the wheel in an empty environment
	@$(MAKE) --no-print-directory VENV=.venv-docs .venv-docs/installed-docs
	rm -rf dist out/wheel
	.venv-docs/bin/python -m build --outdir dist .
	.venv-docs/bin/twine check --strict dist/*
	"$(PYTHON)" -m venv out/wheel
	out/wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cp examples/demo.py out/wheel && cd out/wheel && bin/python demo.py shown
	@ls -l dist

fuzz: with-extras ## Give mutated files and odd arguments to the command line for a minute (SECONDS=600)
	.venv-large/bin/python -m fuzz --seconds $(or $(SECONDS),60)

kills: with-extras ## Kill denoising and training at random moments (KILLS=200)
	.venv-large/bin/python -m fuzz.kills $(or $(KILLS),200)

# The compiler, the BLAS and numpy held to what every x86-64 processor has; compiled code goes to a folder of its own.
DISPATCHED := import numpy; print(*getattr(numpy, "_core", numpy.core)._multiarray_umath.__cpu_dispatch__)
baseline: $(VENV)/installed-test ## Run numerical tests as on a processor without AVX
	NUMBA_CPU_NAME=x86-64 NUMBA_CPU_FEATURES= OPENBLAS_CORETYPE=Prescott NUMBA_CACHE_DIR=out/baseline \
	NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -W ignore -c '$(DISPATCHED)')" \
	$(BIN)/python -m pytest -n auto --dist worksteal tests/kernels tests/priors tests/test_laws.py $(ARGS)

bench: $(VENV)/installed-bench ## Measure speed and memory
	$(BIN)/python benchmarks/run.py

clean: ## Remove the virtual environments, caches and outputs
	rm -rf $(VENV) .venv-app .venv-napari .venv-large .venv-torch .venv-oldest .venv-docs docs/generated out build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src paper tests plugins benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# One empty file for each set of extras that is installed; a newer pyproject.toml asks for it again.
$(VENV)/installed-%: pyproject.toml $(VENV)/made | same-python
	@echo "Installing heatprior$(if $(filter-out base,$*), with its extra '$*') into $(VENV); the first time takes a minute or two"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.$(if $(filter-out base,$*),[$*])' \
		|| { echo "make: pip could not install heatprior (see above); is there a network?" >&2; exit 1; }
	@touch $@

$(VENV)/lowest: pyproject.toml $(VENV)/made | same-python
	@echo "Installing heatprior with the lowest versions that it allows into $(VENV); the first time takes a minute or two"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(LOWEST)]' \
		$$($(BIN)/python .ci/lower_bounds.py $(LOWEST))
	@touch $@

with-extras:
	@$(MAKE) --no-print-directory VENV=.venv-large .venv-large/installed-formats,large,oracles,test

with-torch: $(VENV)/torch $(VENV)/installed-test

# Without its dependencies, of which torchvision brings gigabytes of CUDA: the tests stand in for its names. The others are
# what deepinv imports.
with-deepinv: with-torch
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps deepinv==0.5.0
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check einops h5py natsort requests

$(VENV)/torch: $(VENV)/made | same-python
	@echo "Installing $(TORCH) into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	@touch $@

$(VENV)/made:
	@"$(PYTHON)" -c '' 2>/dev/null \
		|| { echo "make: '$(PYTHON)' does not run; name a Python, 3.11 or later, as in make test PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "make: heatprior needs Python 3.11 or later but '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1);" \
			"name another, as in make test PYTHON=python3.12" >&2; exit 1; }
	@echo "Making the virtual environment $(VENV) with $$("$(PYTHON)" -V 2>&1)"
	@"$(PYTHON)" -m venv $(VENV) \
		|| { echo "make: '$(PYTHON) -m venv' failed; on Debian or Ubuntu, apt install python3-venv" >&2; exit 1; }
	@touch $@

# An environment keeps the Python it was made with: say so rather than test another one than was asked for.
same-python: $(VENV)/made
ifneq ($(origin PYTHON),file)
	@asked=$$("$(PYTHON)" -V 2>/dev/null || echo "no Python that runs"); here=$$($(BIN)/python -V); \
	test "$$asked" = "$$here" \
		|| { echo "make: $(VENV) has $$here but '$(PYTHON)' is $$asked; run make clean first" >&2; exit 1; }
endif
