#!/bin/bash
# Unpacks Debian's cloud kernel into the cache (it is never installed on this machine) and prints
# two lines: the path of the kernel image and that of its modules folder.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

. "$(dirname "$0")/common.sh"

dir=$cache/kernel
show() { printf '%s\n' "$dir/vmlinuz" "$dir"/lib/modules/*; }
there() { [ -e "$dir/version" ]; }

there && { show; exit; }

exec 9>"$cache/kernel.lock"
flock 9
there && { show; exit; }

# The metapackage has no files: what it depends on is the kernel.
find_package() {
	apt-cache depends linux-image-cloud-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-.*-cloud-amd64\)$/\1/p' | head -1
}

new=$(mktemp -d "$cache/kernel.XXXXXX")
trap 'rm -rf "$new"' EXIT
download() {
	package=$(find_package)
	[ -n "$package" ] && (cd "$new" && apt-get download "$package") >"$new/log" 2>&1
}

# Package lists that are missing or older than the archive are the usual reason for a failure.
download || { apt_update; download; } ||
	die "cannot download the kernel package: $(tail -1 "$new/log" 2>/dev/null)"

dpkg -x "$new"/*.deb "$new/tree"
mkdir "$new/kernel" "$new/kernel/lib"
mv "$new"/tree/boot/vmlinuz-* "$new/kernel/vmlinuz"
mv "$new"/tree/boot/config-* "$new/kernel/config"
mv "$new/tree/lib/modules" "$new/kernel/lib/modules"
# An installed kernel has its module index written by the package's script: here we do it.
release=$(basename "$new"/kernel/lib/modules/*)
depmod -b "$new/kernel" "$release"
echo "$package $(dpkg-deb -f "$new"/*.deb Version)" >"$new/kernel/version"
rm -rf "$dir"
mv "$new/kernel" "$dir"
show
