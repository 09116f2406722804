#!/usr/bin/env bash
# Searches the models of the wake-up protocols exhaustively with spin: the right
# variants must hold, and each faulty one must be found faulty for its reason.
#
#   tests/model/run.sh [-v] [PATTERN]    only variants whose name matches PATTERN
#
# Prints one ok / not ok line a variant and exits 1 on a surprise, 2 if it cannot
# run. Two searches at a time, each under 480 MiB. -v shows the path to each fault
# that was found (spin's steps, with the line in the model).
set -u -o pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
spin=${SPIN:-spin}
cc=${CC:-gcc}
jobs_max=2
mem_limit_mib=480
search_depth=1500000

verbose=0
if [[ ${1:-} == -v ]]; then
	verbose=1
	shift
fi
pattern=${1:-}

for tool in "$spin" "$cc"; do
	if ! command -v "${tool%% *}" >/dev/null; then
		echo "tests/model/run.sh: $tool is not installed" >&2
		exit 2
	fi
done

tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT

# What a search must say. "all" wants every statement of the two threads
# executed as well, so that a variant cannot hold by doing nothing.
#   holds | all | asleep (both asleep, work pending) | order (entry seen too early)
variants=(
	"all     notify RESTART"
	"all     notify RESTART FLAGS"
	"all     notify RESTART SLOTS=1"
	"holds   notify RESTART QSIZE=1"
	"holds   notify RESTART QSIZE=1 FLAGS"
	"all     notify"
	"all     notify FLAGS"
	"all     notify SLOTS=1 FLAGS"
	"all     notify DRIVER_BATCH"
	"all     notify PSO"
	"all     notify PSO FLAGS"
	"all     loop"
	"all     loop PSO"
	"all     loop CLEAR_LATE"
)
for mode in "" " FLAGS"; do
	variants+=(
		"asleep  notify NO_FENCE_DRIVER$mode"
		"asleep  notify NO_FENCE_DEVICE$mode"
		"asleep  notify NO_FENCE_DRIVER_KICK$mode"
		"asleep  notify NO_FENCE_DEVICE_ARM$mode"
		"asleep  notify NO_FENCE_DEVICE_CALL$mode"
		"asleep  notify NO_FENCE_DRIVER_ARM$mode"
		"asleep  notify NO_LOOK_AGAIN_DEVICE$mode"
		"asleep  notify NO_LOOK_AGAIN_DRIVER$mode"
		"asleep  notify FORGET_BLOCKED SLOTS=1$mode"
		"asleep  notify FULL_IS_EMPTY$mode"
		"asleep  notify NO_LOOK_ONCE RESTART$mode"
		"asleep  notify LAZY_SIGNAL RESTART$mode"
		"order   notify NO_RELEASE_DRIVER PSO$mode"
		"order   notify NO_RELEASE_DEVICE PSO$mode"
	)
done
variants+=(
	"asleep  notify GUESS_SIGNALLED RESTART"
	"asleep  notify NAIVE_COMPARE"
	"asleep  loop NO_FENCE_POSTER"
	"asleep  loop NO_FENCE_LOOP"
	"asleep  loop NO_LOOK_AGAIN"
	"order   loop NO_RELEASE PSO"
)

# verdict EXPECTED LOG: prints why the log is a surprise, or nothing.
verdict() {
	local expected=$1 log=$2

	if ! grep -q 'errors: [0-9]' "$log"; then
		echo "no result: $(tail -n 1 "$log")"
	elif grep -qE 'max search depth too small|reached -DMEMLIM|out of memory' "$log"; then
		echo "search truncated"
	elif [[ $expected == holds || $expected == all ]]; then
		if ! grep -q 'errors: 0$' "$log"; then
			grep -m 1 '^pan:1:' "$log"
		elif grep -q 'Search not completed' "$log"; then
			echo "search not completed"
		elif [[ $expected == all ]] &&
		     grep -A 9 -E '^unreached in proctype (driver|device|poster|loop|control)' "$log" |
		     awk '/^unreached/ { thread = / (driver|device|poster|loop|control)$/ }
			  thread && /, state / && !/"-end-"/ { found = 1 } END { exit !found }'; then
			echo "statements never executed"
		fi
	elif grep -q 'errors: 0$' "$log"; then
		echo "the fault was not found"
	elif [[ $expected == asleep ]] && ! grep -q '^pan:1: assertion violated  *!(' "$log"; then
		echo "another fault was found: $(grep -m 1 '^pan:1:' "$log")"
	elif [[ $expected == order ]] &&
	     ! grep -qE '^pan:1: assertion violated .*(owner|payload)\[id\]==[13]' "$log"; then
		echo "another fault was found: $(grep -m 1 '^pan:1:' "$log")"
	fi
}

run_variant() {
	local number=$1 expected=$2 model=$3 dir="$tmp/$1" flags=() optimize=-O2 why states
	shift 3
	local name="$model${*:+ $*}"

	# A fault is found at once, so compiling is what takes the time.
	if [[ $expected == asleep || $expected == order ]]; then optimize=-O0; fi
	for flag in "$@"; do flags+=("-D$flag"); done
	mkdir "$dir"
	(
		cd "$dir" || exit
		"$spin" -a "${flags[@]}" "$here/$model.pml" &&
		$cc $optimize -w -DSAFETY -DCOLLAPSE -DMEMLIM=$mem_limit_mib -o pan pan.c &&
		./pan -w22 -m$search_depth
	) >"$dir/log" 2>&1
	why=$(verdict "$expected" "$dir/log")
	states=$(awk '/states, stored/ { print $1 }' "$dir/log")
	if [[ -n $why ]]; then
		echo "not ok $number - $name: $why"
		touch "$tmp/failed"
		if [[ -z $states ]]; then sed 's/^/# /' "$dir/log"; fi
	elif [[ $expected == holds || $expected == all ]]; then
		echo "ok $number - $name: holds, $states states"
	else
		echo "ok $number - $name: found faulty ($expected)"
		if ((verbose)); then
			(cd "$dir" && ./pan -r "$model.pml.trail" | grep -v '^$') | sed 's/^/# /'
		fi
	fi
	rm -rf "$dir"
}

started=0
for variant in "${variants[@]}"; do
	read -r -a words <<<"$variant"
	if [[ -n $pattern && ! "${words[*]:1}" =~ $pattern ]]; then continue; fi
	if (($(jobs -rp | wc -l) >= jobs_max)); then wait -n; fi
	started=$((started + 1))
	run_variant "$started" "${words[@]}" &
done
wait
echo "1..$started"
if ((started == 0)); then
	echo "tests/model/run.sh: no variant matches '$pattern'" >&2
	exit 2
fi
[[ ! -e $tmp/failed ]]
