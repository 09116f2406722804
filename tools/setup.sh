#!/bin/bash
# Installs the Debian packages of packages.txt that are missing. Quick when nothing is.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/guest/common.sh"

command -v dpkg-query >/dev/null || die "this is not Debian: install the packages of packages.txt yourself"

mapfile -t wanted < <(sed 's/#.*//; s/[[:space:]]//g; /^$/d' "$here/../packages.txt")
missing() {
	local have
	have=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null |
		sed -n 's/ installed$//p') || true
	comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) <(sort -u <<<"$have") | tr '\n' ' '
}

# shellcheck disable=SC2046 # one word a package is wanted
install_missing() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
		$(missing) </dev/null >"$cache/apt.log" 2>&1
}

[ -n "$(missing)" ] || exit 0
echo "installing: $(missing)" >&2
# A first try with the package lists that are there saves the update; a fresh machine has none.
install_missing || { apt_update; install_missing; } ||
	die "apt-get install failed: $(grep -m1 '^E:' "$cache/apt.log" || echo "see $cache/apt.log")"
[ -z "$(missing)" ] || die "still missing: $(missing)"
