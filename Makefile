# The verbs of this project. `make help` lists them.

SHELL := /bin/sh
PYTHON ?= python3
# Processes that tests run in, each with a control plane of 400 to 700 MiB (GOGC: its garbage is collected less often).
WORKERS ?= 3
# Workloads of the fault matrix at a time, each with a control plane.
JOBS ?= 2
BIN := .venv/bin
STAMP := .venv/.installed
JOB_IMAGE := image.invalid/tenantry/helm-job:0.1.0
# Where `make images` pushes to, and what it builds from: named by digest.
REGISTRY ?=
PYTHON_IMAGE ?=
GO_IMAGE ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test attacks whole volume flux figures image images check format faults hunt bench fences manifests rights lock sbom audit clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the locked packages and the command tenantry

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed; set PYTHON=/path/to/python3"; exit 1; }
	@echo "installing into .venv (about a minute the first time)"
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv -q --allow-existing --python $(PYTHON) .venv && \
	  uv pip install -q --python $(BIN)/python --require-hashes --only-binary :all: -r requirements.lock && \
	  uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .; \
	else \
	  $(PYTHON) -m venv .venv && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	fi
	@touch $(STAMP)

run: setup ## run everything here: a Kubernetes control plane, sources, broker and functions (Ctrl-C ends it)
	@TENANTRY_CONFIG="$${TENANTRY_CONFIG-docs/examples/tenantry.yaml}" $(BIN)/tenantry up --console

test: setup ## run all tests against a real control plane (built once, about 12 minutes on two cores)
	@$(BIN)/tenantry cluster build helm4
	@GOGC=400 $(BIN)/python -m pytest $(if $(filter-out 0,$(WORKERS)),-n $(WORKERS) --dist loadfile --no-loadscope-reorder)

attacks: setup ## carry out the attacks; WITHOUT=NAME, all or each switches protections off and succeeds when each test that names it fails
	@$(BIN)/tenantry cluster build
	@TENANTRY_WHOLE=1 GOGC=400 $(BIN)/python $(if $(WITHOUT),tests/attacks_without.py $(WITHOUT),-m pytest tests/attacks) $(ARGS)

whole: setup ## all tests, with the modules and variants that `make test` leaves out for their time
	@$(BIN)/tenantry cluster build helm4
	@TENANTRY_WHOLE=1 GOGC=400 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

volume: setup ## the tests that take a sample in a test run, at full size, and those with the Helm controller of K3s
	@$(BIN)/tenantry cluster build helm-controller
	@TENANTRY_FULL_SIZE=1 TENANTRY_WHOLE=1 GOGC=400 $(BIN)/python -m pytest tests/cluster/test_releases_helm.py tests/cluster/test_helm_controller.py \
	  tests/attacks/test_attack_letters.py tests/attacks/test_attack_records.py tests/attacks/test_attack_job_tokens.py \
	  tests/attacks/test_attack_sizes_scopes.py tests/attacks/test_attack_sizes_releases.py \
	  tests/attacks/test_attack_sizes_dashboards.py tests/cluster/test_console_size.py

flux: setup ## the tests with the real source-controller and kustomize-controller of Flux, one at a time (built once, about 10 minutes)
	@$(BIN)/tenantry cluster build flux
	@TENANTRY_REAL_FLUX=1 TENANTRY_WHOLE=1 GOGC=400 $(BIN)/python -m pytest --durations=0 tests/cluster/test_flux_real_*.py $(ARGS)

# The API server collects its garbage on all cores, for a tenth of a second each time.
figures: setup ## how soon Flux tenancy acts and what it costs, against its targets: with nothing else on the machine
	@$(BIN)/tenantry cluster build
	@TENANTRY_WHOLE=1 GOGC=1600 $(BIN)/python -m pytest -s tests/cluster/test_flux_figures.py $(ARGS)

image: setup ## build the image of Helm's Jobs with buildah, and run the tests of releases in it
	@$(BIN)/tenantry cluster build
	@buildah bud --isolation chroot $(ARGS) -t $(JOB_IMAGE) -f knative/helm-job/Containerfile .
	@TENANTRY_JOB_IMAGE=$(JOB_IMAGE) GOGC=400 $(BIN)/python -m pytest tests/cluster/test_releases_helm.py

images: setup ## build all images, push them to REGISTRY, and write dist/deploy with their digests; PYTHON_IMAGE, GO_IMAGE: bases
	@$(BIN)/python tools/images.py build --registry "$(REGISTRY)" --python-image "$(PYTHON_IMAGE)" --go-image "$(GO_IMAGE)" -- \
	  --isolation chroot $(ARGS)

check: setup ## formatting, lint, types, the import contracts and the tables of checks and attacks
	@$(BIN)/ruff format --check --quiet . || { echo "formatting differs: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/mypy --explicit-package-bases tests/bench
	@$(BIN)/mypy tools/*.py
	@$(BIN)/lint-imports --no-cache >.lint-imports.log 2>&1 || { cat .lint-imports.log; rm -f .lint-imports.log; exit 1; }
	@rm -f .lint-imports.log
	@$(BIN)/python tests/checks_table.py --verify
	@$(BIN)/python tests/attacks_table.py --verify
	@$(BIN)/python -m tenantry.testing.fences --verify
	@$(BIN)/python -m tenantry.local.manifest_files --verify
	@echo "check: all good"

format: setup ## put the formatting right
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

faults: setup ## run the whole fault matrix of every workload (3 to 12 minutes each), JOBS at a time, and write docs/faults-*.md
	@$(BIN)/tenantry cluster build
	@ls tests/faults/workloads/[!_]*.py | xargs -P $(JOBS) -I FILE sh -c 'name=$$(basename FILE .py | tr _ -); \
	  GOGC=400 $(BIN)/python -m tenantry.testing.matrix $$name $(ARGS) --markdown docs/faults-$$name.md || \
	  { echo "failures in $$name"; exit 1; }'

hunt: setup ## let the matrix look for the seeded bugs, to prove that it finds them (about 12 minutes)
	@$(BIN)/tenantry cluster build
	@GOGC=400 $(BIN)/python -m tenantry.testing.hunt namespace-registration --markdown docs/faults-seeded-namespace-registration.md
	@for workload in release-provisioning lock-enforcement scope-binding-members; do \
	  GOGC=400 $(BIN)/python -m tenantry.testing.hunt $$workload lose-a-finalizer --markdown docs/faults-seeded-$$workload.md || exit 1; \
	done
	@for what in "rbac-aggregation-paas delete-by-label" "rbac-aggregation-paas-mappings remember-the-configuration" \
	  "scope-binding-paas take-subjects-by-prefix let-go-early" "scope-binding-sources write-the-index-blindly" \
	  "lock-enforcement-access take-every-suspension-for-ours allow-without-the-index"; do set -- $$what; \
	  GOGC=400 $(BIN)/python -m tenantry.testing.hunt $$what --markdown docs/faults-seeded-$$1.md || exit 1; \
	done

bench: setup ## measure; ARGS=--json for JSON, ARGS=--quick for a short run
	@$(BIN)/tenantry cluster build
	@$(BIN)/python tests/bench/run.py $(ARGS)

fences: setup ## write the one admission policy of all fences, knative/fences/policy.yaml, from the fences of the identities
	@$(BIN)/python -m tenantry.testing.fences

manifests: setup ## write what follows from the functions' descriptors: Services, sources, Triggers, rights of sources
	@$(BIN)/python -m tenantry.local.manifest_files

rights: setup ## write the least rights of each function and the lists of its fence, from what the tests used
	@$(BIN)/python -m tenantry.testing.rights

lock: setup ## resolve the packages anew into requirements.lock
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --extra local --extra ssh --group dev pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  -c requirements.lock pyproject.toml -o requirements-image.lock
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  -c requirements.lock --group build -o requirements-build.lock

sbom: setup ## write what is in the wheel, the images and a development environment, as CycloneDX, into dist/sbom
	@$(BIN)/python tools/sbom.py $(if $(PYTHON_IMAGE),--python-image "$(PYTHON_IMAGE)") $(if $(GO_IMAGE),--go-image "$(GO_IMAGE)")

audit: setup ## ask the public databases what is known of the locked packages and of the built programs; needs the network
	@$(BIN)/tenantry cluster build
	@$(BIN)/python tools/audit.py

clean: ## remove .venv and caches of tools
	@rm -rf .venv .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
