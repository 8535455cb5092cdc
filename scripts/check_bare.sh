#!/usr/bin/env bash
# Proves that the checkout needs nothing but Debian 12, make and CA certificates: makes such a root (scripts/root.bash),
# copies the checkout in, and runs `make demo` and `make test` inside. check_bare.sh [--keep] [ROOT] [TARGET]...
# Needs root and debootstrap. Folders beside the checkout are not copied: tests that use them are skipped.
# SPDX-License-Identifier: Apache-2.0
[ "${1:-}" != --help ] || { sed -n '2,/^# SPDX/{/SPDX/d;s/^# \{0,1\}//p}' "$0"; exit 0; }
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/scripts/root.bash"
keep=0
if [ "${1:-}" = --keep ]; then keep=1; shift; fi
root=${1:-$(mktemp -d /tmp/bare.XXXXXX)}
[ $# -gt 0 ] && shift
targets=("$@")
[ $# -gt 0 ] || targets=(demo test)

leave() {
    local point
    for point in dev proc; do
        mountpoint -q "$root/$point" && { umount "$root/$point" || umount -l "$root/$point"; }
    done
    if [ $keep = 0 ] && ! mounted_below "$root"; then rm -rf --one-file-system "$root"; fi
}
trap leave EXIT

make_root "$root"
mkdir -p "$root/lathe"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
mountpoint -q "$root/dev" || mount --bind /dev "$root/dev"
(cd "$top" && tar -c --exclude=./build --exclude=./.git .) | tar -x -C "$root/lathe"
status=0
for target in "${targets[@]}"; do
    echo "== make $target"
    start=$(date +%s)
    in_root "$root" make -C /lathe "$target" || status=1
    echo "== make $target: $(($(date +%s) - start)) s"
done
[ $status = 0 ] && echo "bare: ${#targets[@]} passed, 0 failed" || echo "bare: failed"
exit $status
