#!/usr/bin/env bash
# What `make install` leaves is enough, wherever the tree is moved to (installed/use.bash uses it), and `make uninstall`
# leaves nothing. Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$LATHE_SOURCE" || exit 3
[ -z "${LATHE_SANITIZE:-}" ] || { echo "a library with sanitizers is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
check() {
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $1"
        cat "$work/out"
    fi
}

# make_here TARGET: as a packager calls it, into a root of its own.
make_here() {
    env -u MAKEFLAGS -u MAKELEVEL make "$1" BUILD="$LATHE_BUILD" CC="${CC:-gcc}" PREFIX=/opt/lathe \
        DESTDIR="$work/stage" > "$work/out" 2>&1
}

make_here install
check "make install" $?
# The build folder of the tests holds everything, a user's only what `make` asks for: that must be all that is
# installed.
ninja -C "$LATHE_BUILD" -t query products | sed 's|.*[/ ]||' | sort > "$work/built"
sed 's|.*/||' "$LATHE_BUILD/install_manifest.txt" | grep -E '^lathe$|[.]a$|[.]so$' | sort -u > "$work/installed"
comm -13 "$work/built" "$work/installed" > "$work/out"
[ ! -s "$work/out" ] && [ "$(wc -l < "$work/installed")" -ge 7 ]
check "what is installed is built by make" $?
mv "$work/stage/opt/lathe" "$work/root"
XDG_CACHE_HOME=$LATHE_BUILD/test/vm-cache bash test/vm/installed/use.bash "$work/root" > "$work/out" 2>&1
check "what is installed is used" $?
used=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$work/out")
passed=$((passed + ${used:-0}))

# --- and away again
mkdir -p "$work/stage/opt" && mv "$work/root" "$work/stage/opt/lathe" && echo mine > "$work/stage/opt/lathe/lib/mine"
env -u MAKEFLAGS -u MAKELEVEL make uninstall BUILD="$LATHE_BUILD" PREFIX=/opt/other DESTDIR="$work/stage" > "$work/out" 2>&1
[ $? != 0 ] && grep -q 'not below /opt/other' "$work/out" && [ -e "$work/stage/opt/lathe/bin/lathe" ]
check "make uninstall PREFIX of another place is refused" $?
make_here uninstall
check "make uninstall" $?
(cd "$work/stage" && find . -type f -o -type l -o -name lathe -path './opt/lathe/*') > "$work/out"
[ "$(cat "$work/out")" = ./opt/lathe/lib/mine ]
check "make uninstall leaves what is not Lathe's, and nothing else" $?
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
