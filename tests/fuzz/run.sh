#!/bin/sh
# Fuzz every target over its corpus: tests/fuzz/run.sh [seconds for each target, default 5]
#
# Builds with clang, libFuzzer, ASan and UBSan in build-fuzz (or FUZZ_BUILD). New inputs go to
# FUZZ_BUILD/corpus, crashes to FUZZ_BUILD/crashes; FUZZ_TARGETS picks some of the targets. To repeat
# a crash: FUZZ_BUILD/tests/fuzz/NAME FILE. To take what was found into the corpus:
# FUZZ_BUILD/tests/fuzz/NAME -merge=1 tests/fuzz/corpus/NAME FUZZ_BUILD/corpus/NAME
set -eu

seconds=${1:-5}
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${FUZZ_BUILD:-$root/build-fuzz}
targets=${FUZZ_TARGETS:-fuzz_virtq fuzz_virtio_blk fuzz_vhost_message fuzz_options}

if [ ! -f "$build/build.ninja" ]; then
	CC=clang meson setup "$build" "$root" -Dfuzz=true -Db_sanitize=address,undefined \
		-Db_lundef=false >/dev/null
fi
set --
for name in $targets; do
	set -- "$@" "tests/fuzz/$name"
done
ninja -C "$build" "$@" >"$build/fuzz-build.log" 2>&1 || {
	cat "$build/fuzz-build.log"
	exit 1
}

# A report is a failure, whoever makes it.
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
failed=0
mkdir -p "$build/crashes"
for name in $targets; do
	mkdir -p "$build/corpus/$name"
	log=$build/$name.log
	if "$build/tests/fuzz/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
		-max_len=600 -print_final_stats=1 -artifact_prefix="$build/crashes/$name-" \
		"$build/corpus/$name" "$root/tests/fuzz/corpus/$name" >"$log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "ok $name ($runs runs)"
	else
		echo "not ok $name (see $log)"
		grep -v '^ringside: ' "$log" | tail -40
		failed=1
	fi
done
exit $failed
