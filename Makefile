# The front door: what a person types. Meson does the work, in build/ and build-*/.
.POSIX:

BUILD = build
PYTHON = /usr/bin/python3
MESON_SETUP =
PREFIX = /usr/local

.PHONY: all help setup check check-full demo bench fuzz install clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) ringside

help:
	@echo 'make             build $(BUILD)/ringside'
	@echo 'make check       every test: style, models, units, sanitizers, protocol, fuzz, guests'
	@echo 'make check-full  all of that in its long form, with every guest; hours'
	@echo 'make demo        a virtual machine that writes to a disk of ours'
	@echo 'make bench       compare with qemu-storage-daemon'
	@echo 'make fuzz        the fuzz targets, a minute each'
	@echo 'make install     to PREFIX ($(PREFIX)); DESTDIR is honoured'
	@echo 'make clean       remove what was built'

$(BUILD)/build.ninja:
	@tools/setup.sh
	@meson setup $(MESON_SETUP) --prefix $(PREFIX) $(BUILD)

# ---- tests

setup:
	@tools/setup.sh

check: setup
	@tests/run.sh

check-full: setup
	@RINGSIDE_FULL=1 RINGSIDE_SOAK=1 tests/run.sh

fuzz: setup
	@tests/fuzz/run.sh 60

# ---- the rest

demo: setup
	@$(MAKE) --no-print-directory all
	@$(PYTHON) tools/demo.py

bench: setup
	@$(MAKE) --no-print-directory all
	@$(PYTHON) bench/compare.py

install: all
	@meson install -C $(BUILD) --no-rebuild

clean:
	@rm -rf $(BUILD) build-clang build-asan build-tsan build-fuzz
