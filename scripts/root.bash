# Fresh roots of Debian 12, for what has to work on a machine that has nothing. Sourced, not run; needs root and
# debootstrap. Where packages come from (apt's sources and keys, pip's configuration, certificates) is taken from this
# machine, whatever it is.
# SPDX-License-Identifier: Apache-2.0
[ "$(id -u)" = 0 ] || { echo "a fresh root needs root" >&2; exit 3; }
command -v debootstrap > /dev/null || { echo "a fresh root needs debootstrap: apt-get install debootstrap" >&2; exit 3; }

# The first Debian archive in apt's sources, in either format.
archive() {
    { sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' /etc/apt/sources.list.d/*.sources
      sed -n 's/^deb \(\[[^]]*\] \)\?\([^[:space:]]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
    } 2> /dev/null | grep -m 1 debian || true
}

# mirror ROOT PATH...: copies files or folders of this machine to the same places in the root.
mirror() {
    local root=$1 path
    shift
    for path in "$@"; do
        [ -e "$path" ] || continue
        mkdir -p "$root$(dirname "$path")"
        cp -rL "$path" "$root$(dirname "$path")/"
    done
}

# make_root ROOT: Debian 12 with make and CA certificates in it, unless it is there.
make_root() {
    if [ ! -x "$1/usr/bin/make" ]; then
        # shellcheck disable=SC2046
        debootstrap --variant=minbase --include=make,ca-certificates bookworm "$1" $(archive) > "$1.log" 2>&1 \
            || { tail -n 20 "$1.log"; exit 1; }
    fi
    rm -f "$1/etc/apt/sources.list"
    mirror "$1" /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/auth.conf.d \
        /etc/apt/keyrings /etc/apt/trusted.gpg.d /usr/share/keyrings /etc/pip.conf /etc/resolv.conf /etc/hosts \
        /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates
    # The folder that pip looks for wheels in, when there is one.
    [ ! -d "${PIP_FIND_LINKS:-}" ] || mirror "$1" "$PIP_FIND_LINKS"
    [ ! -f "${SSL_CERT_FILE:-}" ] || mirror "$1" "$SSL_CERT_FILE"
    mkdir -p "$1/proc" "$1/dev"
}

# in_root ROOT COMMAND...: with a fresh environment, but for the settings of pip, proxies and certificates.
in_root() {
    local root=$1 settings=() line
    shift
    while IFS= read -r -d '' line; do
        case $line in PIP_*=*|*_proxy=*|*_PROXY=*|SSL_CERT_FILE=*|SSL_CERT_DIR=*) settings+=("$line") ;; esac
    done < <(env -0)
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        TERM=dumb LANG=C.UTF-8 "${settings[@]}" "$@"
}

# mounted_below FOLDER: nothing there may be removed while something of this machine is.
mounted_below() { grep -q " $(realpath "$1")/" /proc/mounts; }
