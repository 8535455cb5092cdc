#!/usr/bin/env bash
# What is handed to others, in BUILD/dist: dist.sh deb|tarballs [BUILD].
#   deb: Debian packages of what is built: lathe (the program), liblathe0 (shared libraries), liblathe-dev (headers and
#        static libraries)
#   tarballs: the source of the last commit, what `make install` installs, and SHA256SUMS
# The same commit and the same build give the same bytes. The version is that of CMakeLists.txt.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD what=$1 build=$(realpath "${2:-build}")
out=$build/dist
version=$(sed -n 's/^project(lathe VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
# Dates of files and of changelogs: the last commit's.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH LC_ALL=C
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# stage PREFIX FOLDER: installs without debugging information. `make uninstall` goes on with the list of the last
# `make install`.
stage() {
    local list=$build/install_manifest.txt
    [ ! -e "$list" ] || cp "$list" "$work/list"
    DESTDIR=$2 cmake --install "$build" --strip --prefix "$1" > "$work/log" || { cat "$work/log"; exit 1; }
    rm -f "$list"
    [ ! -e "$work/list" ] || mv "$work/list" "$list"
    strip --strip-debug --enable-deterministic-archives "$2$1"/lib/*.a
}

# archive FILE FOLDER: FOLDER of $work as a tarball, without what differs from day to day.
archive() {
    tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "$2" |
        gzip -9n > "$1"
}

tarballs() {
    local name
    name=lathe-$version-linux-$(uname -m)
    git rev-parse HEAD > /dev/null 2>&1 || { echo "dist: the source is archived from a git repository" >&2; exit 3; }
    rm -f "$out"/*.tar.gz "$out/SHA256SUMS"
    git archive --format=tar --prefix="lathe-$version/" HEAD | gzip -9n > "$out/lathe-$version.tar.gz"
    stage / "$work/$name"
    cp LICENSE NOTICE "$work/$name"
    archive "$out/$name.tar.gz" "$name"
    (cd "$out" && sha256sum ./*.tar.gz | sed 's|[.]/||' > SHA256SUMS && cat SHA256SUMS)
}

# --- Debian packages

architecture() { dpkg --print-architecture; }

# depends FILE...: packages whose shared libraries the files need.
depends() {
    mkdir -p "$work/control/debian"
    printf 'Source: lathe\n\nPackage: lathe\nArchitecture: any\n' > "$work/control/debian/control"
    (cd "$work/control" && dpkg-shlibdeps -O "$@" 2> "$work/log") | sed -n 's/^shlibs:Depends=//p'
}

# documents PACKAGE: what Debian wants of every package.
documents() {
    local doc=$work/$1/usr/share/doc/$1
    mkdir -p "$doc"
    {
        printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\n'
        printf 'Copyright: %s The Lathe contributors\nLicense: Apache-2.0\n' "$(date -u +%Y -d "@$SOURCE_DATE_EPOCH")"
        printf ' On Debian systems the text of the license is in\n'
        printf ' /usr/share/common-licenses/Apache-2.0.\n'
    } > "$doc/copyright"
    cp NOTICE "$doc/NOTICE"
    {
        printf 'lathe (%s) unstable; urgency=medium\n\n  * CHANGELOG.md of the source has the changes.\n\n' "$version"
        printf ' -- %s  %s\n' "$maintainer" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
    } | gzip -9n > "$doc/changelog.gz"
}

# package NAME SECTION DEPENDS FIELDS...: $work/NAME becomes a .deb. The last fields are the description.
package() {
    local name=$1 section=$2 needs=$3 root=$work/$1
    shift 3
    documents "$name"
    mkdir -p "$root/DEBIAN"
    {
        printf 'Package: %s\nSource: lathe\nVersion: %s\nArchitecture: %s\nMaintainer: %s\n' \
            "$name" "$version" "$(architecture)" "$maintainer"
        printf 'Installed-Size: %s\nSection: %s\nPriority: optional\n' "$(du -sk "$root/usr" | cut -f1)" "$section"
        [ -z "$needs" ] || printf 'Depends: %s\n' "$needs"
        printf '%s\n' "$@"
    } > "$root/DEBIAN/control"
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
    dpkg-deb --root-owner-group -Zxz --build "$root" "$out/${name}_${version}_$(architecture).deb" > "$work/log"
}

# take PACKAGE FILE...: moves files of the staged tree into a package.
take() {
    local to=$work/$1 file
    shift
    for file in "$@"; do
        mkdir -p "$to/$(dirname "$file")"
        mv "$work/all/$file" "$to/$file"
    done
}

deb() {
    maintainer="${DEBFULLNAME:-The Lathe contributors} <${DEBEMAIL:-lathe@lists.invalid}>"
    rm -f "$out"/*.deb
    stage /usr "$work/all"
    cd "$work/all"
    gzip -9n usr/share/man/man1/lathe.1
    if [ -d usr/share/zsh ]; then # where Debian has those of packages
        mkdir -p usr/share/zsh/vendor-completions
        mv usr/share/zsh/site-functions/_lathe usr/share/zsh/vendor-completions/
        rmdir usr/share/zsh/site-functions
    fi
    take lathe usr/bin usr/share
    take liblathe0 usr/lib/*.so.*
    take liblathe-dev usr/include usr/lib
    cd "$top"
    mkdir -p "$work/liblathe0/DEBIAN"
    printf 'liblathe 0 liblathe0\nliblathe_vm 0 liblathe0\nlibvta 0 liblathe0\n' > "$work/liblathe0/DEBIAN/shlibs"
    echo 'activate-noawait ldconfig' > "$work/liblathe0/DEBIAN/triggers"
    package lathe devel "$(depends "$work/lathe/usr/bin/lathe")" 'Recommends: gcc | c-compiler, libc6-dev, make' \
        'Suggests: pkg-config, libwebp-dev, libopenjp2-7-dev' \
        'Description: compiler of neural networks (ONNX, TensorFlow Lite) to C' \
        ' Lathe turns ONNX and TensorFlow Lite models into C99 for microcontrollers and' \
        ' Linux machines, and into portable modules. This is the program.'
    package liblathe0 libs "$(depends "$work"/liblathe0/usr/lib/*.so.*.*)" 'Recommends: gcc | c-compiler, libc6-dev, make' \
        'Description: compiler of neural networks (ONNX, TensorFlow Lite) to C, shared libraries' \
        ' The compiler as a library, the virtual machine of portable modules, and the' \
        ' run-time and simulators of the VTA accelerator.'
    package liblathe-dev libdevel "liblathe0 (= $version), libjansson-dev, libffi-dev" \
        'Description: compiler of neural networks (ONNX, TensorFlow Lite) to C, development files' \
        ' Headers, static libraries, and files for pkg-config and CMake.'
    ls "$out"/*.deb
}

case $what in
deb | tarballs) "$what" ;;
*) echo "dist.sh deb|tarballs [BUILD]" >&2; exit 2 ;;
esac
