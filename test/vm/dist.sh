#!/usr/bin/env bash
# What `make dist` and `make deb` leave: the same bytes twice, one version everywhere, the source complete, and the
# program, the libraries, the manual page and the completions usable where they are unpacked. Only in `make test-long`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$LATHE_SOURCE" || exit 3
[ -z "${LATHE_SANITIZE:-}" ] || { echo "a program with sanitizers is not handed out"; exit 77; }
git rev-parse HEAD > /dev/null 2>&1 || { echo "the source is archived from a git repository"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dist=$LATHE_BUILD/dist
passed=0 failed=0
check() { # check TEXT COMMAND...
    local text=$1
    shift
    if "$@" > "$work/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $text"
        tail -n 20 "$work/out"
    fi
}
make_here() { env -u MAKEFLAGS -u MAKELEVEL make "$1" BUILD="$LATHE_BUILD" CC="${CC:-gcc}"; }
version=$(sed -n 's/^project(lathe VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)

# used ROOT: the program there compiles a model, and the package runs; nothing else of this tree is asked.
used() {
    local root=$1
    rm -rf "$work/demo"
    [ "$("$root/bin/lathe" --version)" = "lathe $version" ] &&
        env -i PATH=/usr/bin:/bin "$root/bin/lathe" compile demo/digits.onnx -q -o "$work/demo" &&
        env -i PATH=/usr/bin:/bin CFLAGS=-O0 make -s -C "$work/demo" lib &&
        [ -s "$root/share/bash-completion/completions/lathe" ] && [ -s "$root/share/fish/vendor_completions.d/lathe.fish" ]
}
# --- tarballs
check "make dist" make_here dist
cp "$dist/SHA256SUMS" "$work/sums"
check "make dist again" make_here dist
check "the same bytes" diff "$work/sums" "$dist/SHA256SUMS"
check "the sums are right" sh -c "cd '$dist' && sha256sum -c SHA256SUMS"
tar -C "$work" -xzf "$dist/lathe-$version.tar.gz"
git ls-tree -r --name-only HEAD | sort > "$work/tracked"
check "the source is complete" sh -c "cd '$work/lathe-$version' && find . -type f -o -type l | sed 's|^[.]/||' | sort |
    diff '$work/tracked' -"
check "the source can be configured" cmake -S "$work/lathe-$version" -B "$work/made" -DLATHE_TESTS=OFF
mkdir "$work/a folder"
tar -C "$work/a folder" -xzf "$dist/lathe-$version-linux-$(uname -m).tar.gz"
mv "$work/a folder"/* "$work/tarball"
check "the program of the tarball" used "$work/tarball"
check "the manual page of the tarball" grep -q "lathe $version" "$work/tarball/share/man/man1/lathe.1"
check "all of the tarball" bash test/vm/installed/use.bash "$work/tarball"

# --- Debian packages
if command -v dpkg-shlibdeps > /dev/null && command -v dpkg-deb > /dev/null; then
    check "make deb" make_here deb
    (cd "$dist" && sha256sum ./*.deb) > "$work/sums"
    check "make deb again" make_here deb
    check "the same bytes" sh -c "cd '$dist' && sha256sum -c '$work/sums'"
    for deb in "$dist"/*.deb; do
        check "$(basename "$deb") is unpacked" dpkg-deb -x "$deb" "$work/debian"
        check "$(basename "$deb") has the version" [ "$(dpkg-deb -f "$deb" Version)" = "$version" ]
    done
    check "three packages" [ "$(find "$dist" -name '*.deb' | wc -l)" = 3 ]
    check "the program of the packages" used "$work/debian/usr"
    check "all of the packages" bash test/vm/installed/use.bash "$work/debian/usr"
    check "the manual page of the packages" gzip -t "$work/debian/usr/share/man/man1/lathe.1.gz"
    ! command -v lintian > /dev/null || check "lintian finds no error" lintian --allow-root --fail-on error "$dist"/*.deb
else
    echo "dpkg-dev is not here: no Debian packages"
fi
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
