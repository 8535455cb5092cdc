# The front door: every target does its own set-up, then asks CMake, CTest or a script. `make help` lists them.
# SPDX-License-Identifier: Apache-2.0
.DEFAULT_GOAL := build
BUILD := build
PREFIX ?= /usr/local
JOBS  := $(shell nproc 2>/dev/null || echo 2)
# The compiler of the tests, unless CC names another one: a `make test` after `make` goes on with what is built.
COMPILER := $(if $(filter default,$(origin CC)),gcc,$(CC))
CMAKE := cmake -S . -G Ninja -B $(BUILD) -DCMAKE_C_COMPILER=$(COMPILER)
export BUILD JOBS

.PHONY: help build install uninstall deb dist wheel demo demo-vta check test test-long golden-update conformance oom asan tsan fuzz fuzz-long coverage bench sizes layers headers docs fmt clean

help: ## print this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 16

build: ## build/lathe, liblathe, libvta, liblathe_vm and build/exec.out (the default)
	@sh scripts/setup.sh build
	@mkdir -p $(BUILD)
	@[ -e $(BUILD)/lathe ] || echo "building $(BUILD)/lathe and its libraries; configuring: $(BUILD)/configure.log"
	@$(CMAKE) > $(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log; exit 1; }
	@# A terminal sees each step; a log has a line for each tenth, and what compilers say.
	@run="ninja -C $(BUILD) -j$(JOBS) products"; [ ! -t 1 ] || exec $$run; \
		{ NINJA_STATUS='%p ' $$run; echo $$? > $(BUILD)/status; } | awk '/^ninja: (E|n)/ { next } \
			/^ *[0-9]+% / { if ($$1 + 0 >= next_share) { print "building: " $$1; next_share = int($$1 / 10) * 10 + 10 } fflush(); next } \
			{ print; fflush() }'; \
		exit $$(cat $(BUILD)/status)
	@echo "built: $(BUILD)/lathe, $(BUILD)/liblathe.so, $(BUILD)/exec.out, $(BUILD)/runtime/vta/libvta.so, $(BUILD)/runtime/vm/liblathe_vm.so"

install: build ## lathe, its manual page, the libraries and their headers under PREFIX (/usr/local); DESTDIR for packages
	@cmake --install $(BUILD) --prefix $(PREFIX)

uninstall: ## remove what the last `make install` wrote; with PREFIX, only if that was there
	@cmake -DMANIFEST=$(BUILD)/install_manifest.txt -DDESTDIR=$(DESTDIR) \
		-DPREFIX=$(if $(filter command environment,$(origin PREFIX)),$(abspath $(PREFIX))) -P cmake/uninstall.cmake

deb: build ## build/dist/*.deb: Debian packages of the program, the libraries, and their headers
	@bash scripts/dist.sh deb $(BUILD)

dist: build ## build/dist: the source and what `make install` installs as tarballs, with SHA256SUMS
	@bash scripts/dist.sh tarballs $(BUILD)

wheel: build ## build/wheel/lathe_compiler-*.whl: the Python package lathe with the compiler in it, for Python 3.9 and later
	@bash bindings/wheel.sh $(BUILD)

demo: build ## compile the bundled model to C, build it, run it on bundled inputs
	@sh demo/run.sh $(BUILD)/lathe $(BUILD)/demo

demo-vta: build ## the same for a quantised model on the simulated VTA accelerator, with a timeline
	@sh demo/vta.sh $(BUILD)/lathe $(BUILD)/demo-vta

check: ## unit, golden, command line and source checks: for daily work, under a minute
	@sh scripts/setup.sh test
	@bash scripts/test.sh check

test: ## what finds most in a quarter of an hour; prints counts
	@sh scripts/setup.sh test
	@bash scripts/test.sh test

test-long: ## everything: new seeds, sanitizers, all processors; hours. SEED=N repeats a run, ONLY='tsan*' picks stages
	@sh scripts/setup.sh long
	@bash scripts/test.sh long

golden-update: ## rewrite the expected parts of test/golden
	@sh scripts/setup.sh test
	@bash scripts/test.sh golden-update

conformance: build ## the 1914 official ONNX cases; ARGS="--filter 'test_add*'" or ARGS=--update
	@sh scripts/setup.sh test
	@$(BUILD)/venv/bin/python test/py/conformance.py --lathe $(BUILD)/lathe -j $(JOBS) $(ARGS)

oom: build ## every allocation and call of the system fails once; ARGS="--filter 'compile* write *' -v"
	@sh scripts/setup.sh test
	@$(BUILD)/venv/bin/python test/oom/oom.py --lathe $(BUILD)/lathe -j $(JOBS) $(ARGS)

asan: ## build with AddressSanitizer and UBSan; unit, golden and command line tests
	@sh scripts/setup.sh test
	@bash scripts/test.sh asan

tsan: ## build with ThreadSanitizer; runtime tests
	@sh scripts/setup.sh test
	@bash scripts/test.sh tsan

fuzz: ## replay the corpora and fuzz each reader for 10 seconds (SECONDS_PER_TARGET=N)
	@sh scripts/setup.sh test
	@bash scripts/test.sh fuzz

fuzz-long: ## ten minutes for each reader and for mutated models (SECONDS_PER_TARGET=N)
	@sh scripts/setup.sh test
	@SECONDS_PER_TARGET=$(or $(SECONDS_PER_TARGET),600) bash scripts/test.sh fuzz-long

coverage: ## lines of src, tools and runtime that the tests run; ARGS=--write updates docs/notes/testing.md
	@sh scripts/setup.sh coverage
	@bash scripts/coverage.sh $(ARGS)

bench: build ## time and memory of compile, C build and run; ARGS="--filter 'resnet*'"
	@sh scripts/setup.sh test
	@$(BUILD)/venv/bin/python scripts/bench.py --lathe $(BUILD)/lathe $(ARGS)

sizes: ## lengths of functions and files
	@bash scripts/check_sizes.sh --list

layers: build ## folder law, circles of files, globals, allocators
	@bash scripts/check_layers.sh $(BUILD)

headers: ## every header compiles alone as C11 and as C++17
	@bash scripts/check_headers.sh

docs: ## the documentation as a site, build/site/index.html
	@sh scripts/setup.sh docs
	@rm -rf $(BUILD)/doxygen
	@NO_MKDOCS_2_WARNING=1 $(BUILD)/docs-venv/bin/mkdocs build --quiet
	@echo "built: $(BUILD)/site/index.html; to search: python3 -m http.server -d $(BUILD)/site"

fmt: ## clang-format over the C sources
	@sh scripts/setup.sh fmt
	@bash scripts/fmt.sh

clean: ## remove everything that was built (the Python environment too)
	@rm -rf build
