#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every test of the project, stage by stage; what `make check` calls.
#
#   tests/run.sh [STAGE...]     only these stages; without, all of them
#
# Each stage writes build/logs/STAGE.log and counts what passed and failed; a stage that cannot run
# is a failure, and so is a guest test that was skipped because QEMU 11.1 could not be had. The last
# line is the sum: "N passed, N failed", with ", N skipped" where a machine lacks a kernel feature.
# RINGSIDE_FULL=1 runs the whole guest matrix, RINGSIDE_SOAK=1 the long form of each stress. A stage
# that takes longer than RINGSIDE_STAGE_SECONDS hangs, and is ended.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2

python=/usr/bin/python3
logs=$PWD/build/logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0
limit=1500
[ "${RINGSIDE_FULL-}${RINGSIDE_SOAK-}" = "" ] || limit=36000
limit=${RINGSIDE_STAGE_SECONDS:-$limit}

# A stage's own counts, taken from its log and its files.
count() {
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + ${3:-0}))
}

count_junit() { # FILE STATUS
	local counts
	counts=$($python - "$1" 2>/dev/null <<'END'
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
total = bad = skip = 0
for suite in root.iter("testsuite"):
    total += int(suite.get("tests"))
    bad += int(suite.get("failures")) + int(suite.get("errors"))
    skip += int(suite.get("skipped"))
print(max(0, total - bad - skip), bad, skip)
END
	) || { count 0 1; return; }
	# shellcheck disable=SC2086 # three numbers
	count $counts
	case $counts in
	"0 0 "*) count 0 1 ;; # nothing ran
	*" 0 "*) [ "$2" -eq 0 ] || count 0 1 ;;
	esac
}

count_meson() { # BUILD STATUS
	local counts
	counts=$($python - "$1/meson-logs/testlog.json" 2>/dev/null <<'END'
import json, sys
results = [json.loads(line)["result"] for line in open(sys.argv[1], encoding="utf-8")]
print(results.count("OK"), sum(r not in ("OK", "SKIP") for r in results), results.count("SKIP"))
END
	) || { count 0 1; return; }
	# shellcheck disable=SC2086 # three numbers
	count $counts
	case $counts in
	"0 0 "*) count 0 1 ;;
	*" 0 "*) [ "$2" -eq 0 ] || count 0 1 ;;
	esac
}

count_ok_lines() { # LOG STATUS
	local good bad
	good=$(grep -c '^ok ' "$1")
	bad=$(grep -c '^not ok ' "$1")
	[ "$2" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	[ "$good" -gt 0 ] || [ "$bad" -gt 0 ] || bad=1
	count "$good" "$bad"
}

run_pytest() { # NAME FOLDERS...
	local name=$1
	shift
	rm -f "$logs/$name.xml"
	$python -m pytest -q -p no:cacheprovider --junitxml="$logs/$name.xml" -rfEs "$@"
}

run_meson() { # BUILD ARGUMENTS...
	local folder=$1
	shift
	rm -f "$folder/meson-logs/testlog.json"
	meson test -C "$folder" --no-rebuild --print-errorlogs "$@"
}

build() { # FOLDER CC ARGUMENTS...
	local folder=$1 cc=$2
	shift 2
	[ -f "$folder/build.ninja" ] || CC=$cc meson setup "$@" "$folder" || return
	ninja -C "$folder"
}

# One thing that goes well or does not, where a stage has several and the next is worth trying.
try() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$logs/$name.part" 2>&1; then
		echo "ok $name"
	else
		tail -n 40 "$logs/$name.part"
		echo "not ok $name"
	fi
}

stage_build() {
	try gcc build build gcc -Dwerror=true
	try clang build build-clang clang -Dwerror=true
	try asan build build-asan gcc -Dfaults=true -Db_sanitize=address,undefined
	try tsan build build-tsan clang -Db_sanitize=thread -Db_lundef=false
}
stage_style() {
	try tidy $python tools/tidy.py
	try headers $python tools/tidy.py --headers
	try format $python tools/tidy.py --format
}
stage_model() { tests/model/run.sh; }
stage_unit() { run_meson build; }
stage_asan() { RINGSIDE_SANITIZED=1 run_meson build-asan --timeout-multiplier 10; }
stage_tsan() {
	RINGSIDE_SANITIZED=1 run_meson build-tsan --timeout-multiplier 10 --suite unit --suite ring \
		--suite driver
}
stage_fuzz() { tests/fuzz/run.sh "${RINGSIDE_FUZZ_SECONDS:-5}"; }
# The daemon under ASan and UBSan, with the fault layer, for everything that a client can do.
stage_proto() {
	RINGSIDE_SANITIZED=1 RINGSIDE=$PWD/build-asan/ringside run_pytest proto tests/proto
}
stage_cli() { RINGSIDE=$PWD/build/ringside run_pytest cli tests/cli; }
stage_cli_asan() {
	RINGSIDE_SANITIZED=1 RINGSIDE=$PWD/build-asan/ringside run_pytest cli_asan tests/cli
}
# The benchmark's report in a browser.
stage_report() {
	RINGSIDE=$PWD/build/ringside MAKE_REPORT=$PWD/build/tests/report/make_report \
		run_pytest report tests/report
}
stage_tools() { run_pytest tools tests/tools; }
stage_guests() {
	tools/chroot.sh || echo "QEMU 11.1 is not to be had: its tests are skipped"
	RINGSIDE=$PWD/build/ringside run_pytest guests tests/functional tests/interop
}
stage_demo() { try demo make --no-print-directory demo; }

child=
trap 'kill "$child" 2>/dev/null; exit 130' INT TERM

run() { # STAGE
	local name=$1 status start=$SECONDS before=$failed
	# It leads a group of its own, so that all that hangs ends with it.
	timeout -k 30 "$limit" bash tests/run.sh --one "$name" >"$logs/$name.log" 2>&1 </dev/null &
	child=$!
	wait $child
	status=$?
	[ $status -ne 124 ] || echo "$name was ended after $limit s" | tee -a "$logs/$name.log"
	case $name in
	unit) count_meson build $status ;;
	asan) count_meson build-asan $status ;;
	tsan) count_meson build-tsan $status ;;
	build | style | model | fuzz | demo) count_ok_lines "$logs/$name.log" $status ;;
	guests)
		count_junit "$logs/guests.xml" $status
		if grep -q 'QEMU 11.1 is not to be had' "$logs/guests.log"; then
			echo "SKIPPED, AND THAT IS A FAILURE: the tests with QEMU 11.1 (tools/chroot.sh)"
			count 0 1
		fi
		;;
	*) count_junit "$logs/$name.xml" $status ;;
	esac
	if [ "$failed" -gt "$before" ]; then
		echo "FAIL $name ($((SECONDS - start)) s); the end of $logs/$name.log:"
		tail -n 60 "$logs/$name.log"
	else
		echo "ok   $name ($((SECONDS - start)) s)"
	fi
}

if [ "${1-}" = --one ]; then
	"stage_$2"
	exit
fi
if [ $# -eq 0 ]; then
	set -- build style tools model unit asan tsan cli cli_asan report proto fuzz guests demo
fi
for stage in "$@"; do
	if ! declare -F "stage_$stage" >/dev/null; then
		echo "tests/run.sh: there is no stage '$stage'" >&2
		exit 2
	fi
	run "$stage"
done
echo "all of it took $((SECONDS / 60)) min"
if [ "$skipped" -gt 0 ]; then
	echo "$passed passed, $failed failed, $skipped skipped"
else
	echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
