#!/bin/bash
# Makes, once, a Debian 13 tree with QEMU 11.1 and its libblkio driver in the cache: the newer
# hypervisor and the foreign clients that the guest tests, the interop tests and the benchmark use.
#
#   tools/chroot.sh            make it if it is missing; prints its path
#   tools/chroot.sh --check    print its path and exit 0 if it is there, else exit 1
#
# Its programs are called through tools/guest/qemu11, without mounts. Set RINGSIDE_MIRROR to take
# the packages from another mirror than the one that this machine's apt uses.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/guest/common.sh"

root=$cache/trixie-qemu11
suite=trixie
packages=(qemu-system-x86 qemu-utils qemu-block-extra fio)

# The stamp is the last thing written before the rename, and holds what was asked for: a change of
# the list above makes a new tree.
stamp="$suite ${packages[*]}"
there() { [ -x "$root/usr/bin/qemu-img" ] && [ "$(cat "$root/.ringside" 2>/dev/null)" = "$stamp" ]; }

case ${1-} in
--check) there && echo "$root"; exit ;;
"") ;;
*) die "usage: tools/chroot.sh [--check]" ;;
esac

there && { echo "$root"; exit; }
command -v debootstrap >/dev/null || [ -x /usr/sbin/debootstrap ] ||
	die "debootstrap is missing: run tools/setup.sh"

# Debootstrap needs root and mounts /proc inside the tree: a mount namespace of its own makes those
# mounts go away with it, however it ends.
if [ "${RINGSIDE_CHROOT_INSIDE-}" != 1 ]; then
	as_root=()
	[ "$(id -u)" = 0 ] || as_root=(sudo --preserve-env=RINGSIDE_CACHE,RINGSIDE_MIRROR)
	exec "${as_root[@]}" env RINGSIDE_CHROOT_INSIDE=1 RINGSIDE_CACHE="$cache" \
		PATH="$PATH:/usr/sbin:/sbin" unshare --mount "$here/chroot.sh"
fi

exec 9>"$cache/trixie.lock"
flock 9
there && { echo "$root"; exit; }

mirror=${RINGSIDE_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)|$(ORIGIN)|$(CODENAME)' \
	'Created-By: Packages' | sed -n 's/|Debian|bookworm$//p' | head -1)}
mirror=${mirror:-http://deb.debian.org/debian/}

new=$(mktemp -d "$cache/trixie.XXXXXX")
log=$cache/trixie.log
trap 'rm -rf --one-file-system "$new"' EXIT
chmod 755 "$new"

echo "making a $suite tree with QEMU 11.1 in $root (some minutes, once)" >&2
fail() { tail -5 "$log" >&2; die "the $suite tree cannot be made; see $log"; }

debootstrap --variant=minbase "$suite" "$new" "$mirror" >"$log" 2>&1 || fail
echo "deb $mirror $suite-backports main" >"$new/etc/apt/sources.list.d/backports.list"

# No service may start in there, and no proxy or certificate setting of this machine is lost.
printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d"
chmod 755 "$new/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$new/etc/resolv.conf" 2>/dev/null || true
apt-config dump Acquire::http::Proxy >"$new/etc/apt/apt.conf.d/90proxy" 2>/dev/null || true

inside() { LC_ALL=C DEBIAN_FRONTEND=noninteractive chroot "$new" "$@" >>"$log" 2>&1 </dev/null; }
inside apt-get update || fail
inside apt-get install -y --no-install-recommends -t "$suite-backports" "${packages[@]}" || fail
inside apt-get clean || fail
rm -rf "$new"/var/lib/apt/lists/*

echo "$stamp" >"$new/.ringside"
[ ! -e "$root" ] || { rm -rf --one-file-system "$root.old"; mv "$root" "$root.old"; }
mv "$new" "$root"
rm -rf --one-file-system "$root.old"
trap - EXIT
echo "$root"
