# Sourced by the scripts that fill the cache: where the cache is, and how they report an error.
# shellcheck shell=bash

cache=${RINGSIDE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ringside}
mkdir -p "$cache"

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

# As root, whoever calls: through sudo where needed.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "needs root (or sudo) to run: $*"
	fi
}

apt_update() {
	as_root apt-get update -q >"$cache/apt.log" 2>&1 ||
		die "apt-get update failed: $(grep -m1 '^E:' "$cache/apt.log" || echo "see $cache/apt.log")"
}
