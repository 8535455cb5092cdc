#!/usr/bin/env bash
# Proves that what is handed to others works where nothing else is: makes a fresh Debian 12 for each kind, installs it
# there as docs/how-to/install.md says, uses it, and removes it again. check_packages.sh [--keep] [FOLDER] [KIND]...
#   deb: `make deb`, by apt       tarball: `make dist`, unpacked      source: its source, `make`, `make demo`, `make install`
#   wheel: `make wheel`, by pip, and the tutorials, word for word     image: the Containerfile, by buildah
# Takes the last commit, and build/. Needs root, debootstrap, and buildah for the image; a quarter of an hour.
# SPDX-License-Identifier: Apache-2.0
[ "${1:-}" != --help ] || { sed -n '2,/^# SPDX/{/SPDX/d;s/^# \{0,1\}//p}' "$0"; exit 0; }
set -uo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 3
. scripts/root.bash
keep=0
if [ "${1:-}" = --keep ]; then keep=1; shift; fi
folder=$(realpath "${1:-$(mktemp -d /tmp/packages.XXXXXX)}")
[ $# -gt 0 ] && shift
kinds=("$@")
[ $# -gt 0 ] || kinds=(deb tarball source wheel image)
mkdir -p "$folder"
version=$(sed -n 's/^project(lathe VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=lathe-$version-linux-$(uname -m)
passed=0 failed=0 skipped=0

leave() {
    local root
    for root in "$folder"/*/; do
        mountpoint -q "${root}proc" && { umount "${root}proc" || umount -l "${root}proc"; }
    done
    if [ $keep = 0 ] && ! mounted_below "$folder"; then rm -rf --one-file-system "$folder"; fi
}
trap leave EXIT

# check TEXT COMMAND...: counts, and says how long it took
check() {
    local text=$1 start=$SECONDS
    shift
    if "$@" > "$folder/log" 2>&1; then
        passed=$((passed + 1))
        echo "$text: $((SECONDS - start)) s"
    else
        failed=$((failed + 1))
        echo "FAILED $text"
        tail -n 30 "$folder/log"
    fi
}

# fresh KIND: a root of its own, with the source in /lathe, which is not built there
fresh() {
    root=$folder/$1
    make_root "$folder/base"
    cp -a "$folder/base" "$root" && mkdir "$root/lathe" "$root/given" "$root/work" && mount -t proc proc "$root/proc" &&
        git archive HEAD | tar -x -C "$root/lathe"
    in_root "$root" apt-get update
}
# here COMMANDS: in that root
here() {
    in_root "$root" LATHE_SOURCE=/lathe DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "cd /work; $1"
}
packages() { here "apt-get install -y --no-install-recommends $*"; }
developer="pkg-config cmake g++ python3"
# page FOLDER PAGE...: the code blocks of these pages; the `lathe` of that folder comes first on PATH
page() {
    here "PATH=$1:\$PATH; cd /lathe; python3 test/docs.py --lathe \"\$(command -v lathe)\" ${*:2} | tee /work/said; grep -q ^[1-9] /work/said"
}
first_run='cp /lathe/demo/digits.onnx . && lathe compile digits.onnx -o out && make -C out &&
    head -c 256 /dev/zero > picture.bin && out/runner -o results image=picture.bin && [ -s results/probabilities.bin ]'
# What the system has of Lathe, but for what was given to the root, and caches.
left='find / -xdev -regex "/\(proc\|lathe\|work\|given\|var/cache/man\|root/[.]cache\)" -prune -o -iname "*lathe*" -print -o \
    -name "libvta*" -print'

kind_deb() {
    cp build/dist/*.deb "$root/given"
    check "deb: apt installs the packages" here 'apt-get install -y /given/*.deb'
    check "deb: lathe compiles, make builds, the runner runs" here "$first_run"
    check "deb: developers' packages" packages "$developer" man-db zsh fish
    check "deb: man lathe" here 'man lathe | grep -q "compiles neural networks to C"'
    check "deb: everything that is installed" here 'bash /lathe/test/vm/installed/use.bash /usr'
    check "deb: docs/tutorials/first-model.md" page /usr/bin docs/tutorials/first-model.md
    check "deb: apt removes them" here 'apt-get purge -y lathe liblathe0 liblathe-dev'
    check "deb: nothing is left" here "[ -z \"\$($left)\" ]"
}

kind_tarball() {
    cp build/dist/*.tar.gz build/dist/SHA256SUMS "$root/given"
    check "tarball: the sums" here 'cd /given && sha256sum -c SHA256SUMS'
    check "tarball: what it needs" packages libjansson4 libffi8 gcc libc6-dev
    check "tarball: is unpacked" here 'tar -C /opt -xzf /given/lathe-*-linux-*.tar.gz'
    check "tarball: lathe compiles, make builds, the runner runs" here "PATH=/opt/$name/bin:\$PATH; $first_run"
    check "tarball: developers' packages" packages "$developer" libjansson-dev libffi-dev
    check "tarball: everything in it" here "bash /lathe/test/vm/installed/use.bash /opt/$name"
}

kind_source() {
    cp build/dist/*.tar.gz build/dist/SHA256SUMS "$root/given"
    check "source: the sums" here 'cd /given && sha256sum -c SHA256SUMS'
    check "source: is unpacked" here "tar -xzf /given/lathe-$version.tar.gz"
    check "source: make" here "make -C lathe-$version"
    check "source: make demo" here "make -C lathe-$version demo"
    check "source: make install" here "make -C lathe-$version install"
    check "source: lathe compiles, make builds, the runner runs" here "$first_run"
    check "source: developers' packages" packages "$developer"
    check "source: everything that is installed" here 'bash /lathe/test/vm/installed/use.bash /usr/local'
    check "source: make uninstall" here "make -C lathe-$version uninstall"
    check "source: nothing is left" here "[ -z \"\$($left)\" ]"
}

# The first sh block of a page, which the test of the pages leaves out: how it is installed.
first_block() { awk '/^```sh/ { on = 1; next } /^```/ && on { exit } on' "$1"; }

kind_wheel() {
    mkdir -p "$root/work/build/wheel"
    cp build/wheel/*.whl "$root/work/build/wheel"
    check "wheel: what the tutorial asks for" here 'apt-get install -y gcc python3-venv'
    check "wheel: is installed as the tutorial says" here "$(first_block docs/tutorials/python.md)"
    check "wheel: docs/tutorials/python.md" page /work/lathe-env/bin docs/tutorials/python.md
    check "wheel: docs/tutorials/first-model.md" page /work/lathe-env/bin docs/tutorials/first-model.md
    check "wheel: the page on ONNX" here '. lathe-env/bin/activate; pip install -q onnx'
    check "wheel: docs/tutorials/pytorch.md, without PyTorch" page /work/lathe-env/bin docs/tutorials/pytorch.md
    check "wheel: pip removes it" here '. lathe-env/bin/activate; pip uninstall -y lathe-compiler'
    check "wheel: nothing is left" here '[ -z "$(find lathe-env -name "*lathe*" ! -name lathe-env -o -name "vta_ffi*")" ]'
}

kind_image() {
    command -v buildah > /dev/null || { echo "image: skipped, no buildah"; skipped=$((skipped + 1)); return; }
    local store=(--storage-driver vfs --root "$folder/store" --runroot "$folder/run") container
    export BUILDAH_ISOLATION=chroot
    umount "$root/proc"
    # What registries call by this name is not asked for: the fresh root has it.
    container=$(buildah "${store[@]}" from scratch)
    check "image: a Debian to start from" sh -c "buildah ${store[*]} add -q $container $folder/base / &&
        buildah ${store[*]} commit -q $container docker.io/library/debian:12 && buildah ${store[*]} rm $container"
    check "image: the Containerfile" buildah "${store[@]}" bud --pull=never -t lathe "$root/lathe"
    container=$(buildah "${store[@]}" from --pull=never localhost/lathe)
    run_image() { buildah "${store[@]}" run -v "$root/work:/work" "$container" "$@"; }
    cp demo/digits.onnx "$root/work"
    check "image: lathe compiles" run_image lathe compile digits.onnx -o out
    check "image: make builds" run_image make -C out
    check "image: the runner runs" run_image sh -c 'head -c 256 /dev/zero > picture.bin && out/runner image=picture.bin'
    check "image: the entry point" [ "$(buildah "${store[@]}" inspect --format '{{.OCIv1.Config.Entrypoint}}' "$container")" = '[lathe]' ]
    check "image: is removed" sh -c "buildah ${store[*]} rm --all && buildah ${store[*]} rmi --all --force"
}

for kind in "${kinds[@]}"; do
    case $kind in
    deb) check "make deb" make -s deb ;;
    tarball | source) check "make dist" make -s dist ;;
    wheel) check "make wheel" make -s wheel ;;
    image) ;;
    *) echo "check_packages.sh [--keep] [FOLDER] [deb|tarball|source|wheel|image]..." >&2; exit 2 ;;
    esac
    check "$kind: a fresh Debian 12" fresh "$kind"
    "kind_$kind"
done
echo "packages: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
