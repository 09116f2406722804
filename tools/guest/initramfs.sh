#!/bin/bash
# Builds the guest's root file systems in the cache and prints their paths, one a line: cpio
# archives that the kernel unpacks one over the other.
#
#   initramfs.sh              busybox, modules, ext4 and xfs tools
#   initramfs.sh fio          those, and fio with its libraries (80 MB, so only on demand)
#
# The test appends a third archive with its script as /run.sh (see guest.py). They are not
# compressed: unpacking would cost an emulated processor more than loading costs.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

modules_wanted=(virtio_pci virtio_blk virtio_scsi sd_mod xfs)
base_programs=(mkfs.ext4 e2fsck mkfs.xfs blkdiscard fstrim blockdev)

modules=$("$here/kernel.sh" | sed -n 2p)
tree=${modules%/lib/modules/*}
kernel=$(cat "$tree/version")

# What goes in decides the name: new tools, kernel or init make a new archive.
name_of() {
	{
		echo "$kernel"
		cat "$0" "$here/init" "$here/load"
		stat -L -c '%n %s %Y' "$(command -v busybox)" "$@"
	} | sha256sum | cut -c1-16
}

# A program, and every library that it loads, at the paths where it looks for them.
add_program() {
	local file lib
	file=$(command -v "$1") || die "$1 is missing: run tools/setup.sh"
	install -D "$file" "$2$file"
	ldd "$file" | grep -o '/[^ ]*' | sort -u | while read -r lib; do
		[ -e "$2$lib" ] || install -D "$lib" "$2$lib"
	done
}

# The modules and, in /lib/modules/NAME.order, what must be loaded in which order for each of them.
add_modules() {
	local name file
	mkdir -p "$1/lib/modules"
	for name in "${modules_wanted[@]}"; do
		modprobe -d "$tree" -S "${modules##*/}" --show-depends "$name" >"$new/list" ||
			die "module $name is not in $kernel"
		# The emulated processor has no CRC instruction; the kernel does without.
		sed -n '/crc32c-intel/d; s/^insmod \([^ ]*\.ko\).*/\1/p' "$new/list" | while read -r file; do
			cp "$file" "$1/lib/modules/"
			basename "$file" .ko >>"$1/lib/modules/$name.order"
		done
	done
}

pack() { (cd "$1" && find . -mindepth 1 | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) >"$2"; }

build_base() {
	local root=$new/root dir
	for dir in bin sbin usr/bin usr/sbin etc dev proc sys tmp run mnt lib64; do
		mkdir -p "$root/$dir"
	done
	install "$(command -v busybox)" "$root/bin/busybox"
	install "$here/init" "$root/init"
	install "$here/load" "$root/sbin/load"
	echo "root:x:0:0:root:/:/bin/sh" >"$root/etc/passwd"
	add_modules "$root"
	for program in "${base_programs[@]}"; do
		add_program "$program" "$root"
	done
	pack "$root" "$new/out"
}

build_fio() {
	add_program fio "$new/root"
	pack "$new/root" "$new/out"
}

make() {
	local what=$1 out
	out=$cache/initramfs-$what-$2.cpio
	if [ ! -e "$out" ]; then
		exec 9>"$cache/initramfs.lock"
		flock 9
		if [ ! -e "$out" ]; then
			new=$(mktemp -d "$cache/initramfs.XXXXXX")
			trap 'rm -rf "$new"' EXIT
			"build_$what"
			# Another checkout may be about to read its own: only old ones go.
			find "$cache" -maxdepth 1 -name "initramfs-$what-*.cpio" -mtime +1 -delete
			mv "$new/out" "$out"
			rm -rf "$new"
		fi
		exec 9>&-
	fi
	echo "$out"
}

make base "$(name_of "${base_programs[@]/#/$(dirname "$(command -v mkfs.ext4)")/}" 2>/dev/null)"
case ${1-} in
"") ;;
fio) make fio "$(name_of "$(command -v fio)")" ;;
*) die "usage: initramfs.sh [fio]" ;;
esac
