#!/usr/bin/env bash
# Proves that the checkout needs nothing but Debian 12, make and CA certificates: makes such a root with debootstrap,
# copies the checkout in, and runs `make demo` and `make test` inside. check_bare.sh [--keep] [ROOT] [TARGET]...
# Where packages come from (apt's sources and keys, pip's configuration, certificates) is taken from this machine,
# whatever it is. Needs root and debootstrap. Folders beside the checkout are not copied: tests that use them are
# skipped.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
keep=0
if [ "${1:-}" = --keep ]; then keep=1; shift; fi
root=${1:-$(mktemp -d /tmp/bare.XXXXXX)}
[ $# -gt 0 ] && shift
targets=("$@")
[ $# -gt 0 ] || targets=(demo test)
[ "$(id -u)" = 0 ] || { echo "check_bare: needs root" >&2; exit 3; }
command -v debootstrap > /dev/null || { echo "check_bare: apt-get install debootstrap" >&2; exit 3; }

# Nothing below ROOT may be removed while something of this machine is still mounted there.
leave() {
    local point
    for point in dev proc; do
        mountpoint -q "$root/$point" && { umount "$root/$point" || umount -l "$root/$point"; }
    done
    if [ $keep = 0 ] && ! grep -q " $root/" /proc/mounts; then rm -rf --one-file-system "$root"; fi
}
trap leave EXIT

# The first Debian archive in apt's sources, in either format.
archive() {
    { sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' /etc/apt/sources.list.d/*.sources
      sed -n 's/^deb \(\[[^]]*\] \)\?\([^[:space:]]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
    } 2> /dev/null | grep -m 1 debian || true
}

# Copies a file or folder of this machine to the same place in the root.
mirror() {
    local path
    for path in "$@"; do
        [ -e "$path" ] || continue
        mkdir -p "$root$(dirname "$path")"
        cp -rL "$path" "$root$(dirname "$path")/"
    done
}

if [ ! -x "$root/usr/bin/make" ]; then
    # shellcheck disable=SC2046
    debootstrap --variant=minbase --include=make,ca-certificates bookworm "$root" $(archive) > "$root.log" 2>&1 \
        || { tail -n 20 "$root.log"; exit 1; }
fi
rm -f "$root/etc/apt/sources.list"
mirror /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/auth.conf.d /etc/apt/keyrings \
    /etc/apt/trusted.gpg.d /usr/share/keyrings /etc/pip.conf /etc/resolv.conf /etc/hosts \
    /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates
mkdir -p "$root/proc" "$root/dev" "$root/lathe"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
mountpoint -q "$root/dev" || mount --bind /dev "$root/dev"

# Settings of pip, proxies and certificates, and the folder that pip looks for wheels in, when there is one.
settings=()
while IFS= read -r -d '' line; do
    case $line in PIP_*=*|*_proxy=*|*_PROXY=*|SSL_CERT_FILE=*|SSL_CERT_DIR=*) settings+=("$line") ;; esac
done < <(env -0)
[ -d "${PIP_FIND_LINKS:-}" ] && mirror "$PIP_FIND_LINKS"
[ -f "${SSL_CERT_FILE:-}" ] && mirror "$SSL_CERT_FILE"

(cd "$top" && tar -c --exclude=./build --exclude=./.git .) | tar -x -C "$root/lathe"
status=0
for target in "${targets[@]}"; do
    echo "== make $target"
    start=$(date +%s)
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        TERM=dumb LANG=C.UTF-8 "${settings[@]}" make -C /lathe "$target" || status=1
    echo "== make $target: $(($(date +%s) - start)) s"
done
[ $status = 0 ] && echo "bare: ${#targets[@]} passed, 0 failed" || echo "bare: failed"
exit $status
