# The front door: what a person types. Meson does the work, in build/ and build-*/.
.POSIX:

BUILD = build
PYTHON = /usr/bin/python3
PYTEST = $(PYTHON) -m pytest -q -p no:cacheprovider
MESON_SETUP =
PREFIX = /usr/local

.PHONY: all help check check-unit check-cli check-proto check-model check-style check-full demo \
	bench fuzz sanitize install clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

help:
	@echo 'make             build $(BUILD)/ringside'
	@echo 'make check       unit, command line and protocol tests, models, style; minutes'
	@echo 'make check-full  all of that in its long form, and guests; an hour and more'
	@echo 'make demo        a virtual machine that writes to a disk of ours'
	@echo 'make bench       compare with qemu-storage-daemon'
	@echo 'make sanitize    the tests under the address, undefined and thread sanitizers'
	@echo 'make fuzz        the fuzz targets, for a short time each'
	@echo 'make install     to PREFIX ($(PREFIX)); DESTDIR is honoured'
	@echo 'make clean       remove what was built'

$(BUILD)/build.ninja:
	@meson setup $(MESON_SETUP) --prefix $(PREFIX) $(BUILD)

# The fault layer below the engines is compiled in for tests only.
build-faults/build.ninja:
	@meson setup $(MESON_SETUP) -Dfaults=true build-faults

build-asan/build.ninja:
	@meson setup -Dfaults=true -Db_sanitize=address,undefined -Db_lundef=false build-asan

build-tsan/build.ninja:
	@CC=clang meson setup -Dfaults=true -Db_sanitize=thread -Db_lundef=false build-tsan

build-fuzz/build.ninja:
	@CC=clang meson setup -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false build-fuzz

# ---- tests

check: check-style check-unit check-cli check-proto check-model

check-style:
	@if [ -f tools/tidy.py ]; then $(PYTHON) tools/tidy.py; fi

check-unit: all
	@meson test -C $(BUILD) --print-errorlogs --no-rebuild

check-cli: all
	@RINGSIDE=$(CURDIR)/$(BUILD)/ringside $(PYTEST) tests/cli

check-proto: build-faults/build.ninja
	@ninja -C build-faults
	@RINGSIDE=$(CURDIR)/build-faults/ringside $(PYTEST) tests/proto

check-model:
	@tests/model/run.sh

check-full: check
	@RINGSIDE_SOAK=1 meson test -C $(BUILD) --print-errorlogs --no-rebuild --timeout-multiplier 100
	@RINGSIDE_SOAK=1 RINGSIDE=$(CURDIR)/build-faults/ringside $(PYTEST) tests/proto
	@for t in tests/functional tests/interop; do \
		if ls $$t/test_*.py >/dev/null 2>&1; then \
			RINGSIDE=$(CURDIR)/$(BUILD)/ringside RINGSIDE_FULL=1 $(PYTEST) $$t || exit 1; \
		fi; \
	done

sanitize: build-asan/build.ninja build-tsan/build.ninja
	@for b in build-asan build-tsan; do \
		ninja -C $$b && \
		RINGSIDE_SANITIZED=1 meson test -C $$b --print-errorlogs --no-rebuild \
			--timeout-multiplier 10 && \
		RINGSIDE_SANITIZED=1 RINGSIDE=$(CURDIR)/$$b/ringside \
			$(PYTEST) tests/cli tests/proto || exit 1; \
	done

fuzz: build-fuzz/build.ninja
	@ninja -C build-fuzz
	@meson test -C build-fuzz --suite fuzz --print-errorlogs --no-rebuild

# ---- the rest

demo: all
	@examples/demo.sh

bench: all
	@$(PYTHON) bench/compare.py

install: all
	@meson install -C $(BUILD) --no-rebuild

clean:
	@rm -rf $(BUILD) build-faults build-asan build-tsan build-fuzz
