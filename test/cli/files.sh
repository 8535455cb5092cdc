#!/usr/bin/env bash
# What lathe does to the files of others: which folders and files it never replaces, a write that is stopped at every
# step, inputs that are no plain files or change while they are read, names with odd characters.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
model=$top/demo/digits.onnx
cd "$work" || exit 3
six_operators > six.txt
"$lathe" compile -q six.txt -O0 -o old && "$lathe" compile -q six.txt -o new || bad "no package to begin with"

# --- what is not ours stays
same() { check "$1" diff -r "$2" "$3"; }
mkdir proj && echo mine > proj/main.c && mkdir proj/.git && "$lathe" compile -q six.txt -o p --report proj/report.json
expect_error 2 'proj.*left alone.*lathe-manifest.txt.*: .git/, main.c, report.json' compile six.txt -o proj
check "a report makes no folder ours" test -s proj/main.c -a -d proj/.git
cp -r old was && rm was/lathe-manifest.txt && cp -r was was.copy
expect_error 2 'an earlier version wrote it.*remove it yourself' compile six.txt -o was
same "a package without manifest stays" was was.copy

cp -r old out && make -s -C out all lib WORKERS=2 CC="${CC:-cc}"
expect 0 '' compile six.txt -o out
same "a package and what its Makefile built is replaced" out new
for entry in notes.txt src/extra.c build/precious.txt include/.hidden runner.old; do
    rm -rf out && cp -r old out && mkdir -p out/build && echo mine > "out/$entry" && cp -r out copy
    expect_error 2 "'out' is left alone.*$entry" compile six.txt -o out
    same "a package with $entry stays" out copy
    rm -rf copy
done
rm -rf out && cp -r old out && echo '/* mine */' >> out/src/ops.c && sed -i 's/WORKERS/THREADS/' out/Makefile && cp -r out copy
expect_error 2 'Makefile \(changed.*src/ops.c \(changed' compile six.txt -o out
same "a package that was edited stays" out copy
rm -rf out copy && cp -r old out && mv out/src elsewhere && ln -s ../elsewhere out/src
expect_error 2 'left alone.*src' compile six.txt -o out
check "what a link in a package leads to stays" test -s elsewhere/ops.c
rm -rf out && cp -r old out && rm out/README* out/CMakeLists.txt 2> /dev/null
expect 0 '' compile six.txt -o out
same "a package of which a file was removed is replaced" out new
rm -rf out && mkdir out && for i in $(seq 20); do echo mine > out/$i; done
expect_error 2 ': 1, 10, 11, 12, 13 and 15 more' compile six.txt -o out
cp -r old real && ln -s real link
expect 0 '' compile six.txt -o link
same "a link to a package leads to where it goes" real new
check "and stays a link" test -L link
mkdir -m 750 mode && "$lathe" compile -q six.txt -o mode && check "the mode of the folder stays" test "$(stat -c %a mode)" = 750

# --- neither the current folder, nor one of an input, nor one above
expect_error 2 'current folder' compile six.txt -o .
expect_error 2 'current folder' compile six.txt -o "$work/old/.."
expect_error 2 'current folder' compile six.txt -o /
cd new/src && expect_error 2 'current folder' compile ../../six.txt -o ../../new
cd .. && expect_error 2 'current folder' compile ../six.txt -o ../new
cd ..
mkdir -p in/deep && cp six.txt in/deep/six.txt && ln -s in/deep/six.txt six.link && ln -s "$work/in" in.link
for place in in in/deep in.link in.link/deep/; do
    expect_error 2 "it holds the input" compile in/deep/six.txt -o "$place"
    expect_error 2 "it holds the input" compile six.link -o "$place"
    expect_error 2 "it holds the input" run six.link --keep "$place"
done
check "the input stays" cmp six.txt in/deep/six.txt

# --- an input is no output
ln six.txt hard.txt && ln -s six.txt soft.txt && head -c 4 /dev/zero > x.npy && sum=$(cksum < six.txt)
for name in six.txt ./six.txt hard.txt soft.txt; do
    expect_error 2 'is an input of this run' compile six.txt -o p --report $name
    expect_error 2 'is an input of this run' compile six.txt --emit graph -o $name
    expect_error 2 'is an input of this run' opt six.txt -o $name
    expect_error 2 'is an input of this run' inspect six.txt --html $name
done
printf 'func @main(%%x: f32[1]) {\n  %%y = exp(%%x) : f32[1]\n  return %%y\n}\n' > y.npy
expect_error 2 'is an input of this run' run y.npy --interpret --output-dir .
check "the inputs stay" test "$(cksum < six.txt)" = "$sum" -a "$(head -c 4 y.npy)" = func

# --- inputs that are no files: said at once, not waited for
mkfifo pipe && mkdir folder && "$lathe" vta conv2d height=14,width=14,in_channels=16,out_channels=16 -o conv
for wrong in pipe /dev/zero folder; do
    expect_error 1 'pipe|device|folder|directory' compile $wrong -o p2
    expect_error 1 'pipe|device|folder|directory' run $wrong
    expect_error 1 'pipe|device|folder|directory' opt $wrong
    expect_error 1 'pipe|device|folder|directory' opt conv.te --schedule $wrong --lower plain
    expect_error 1 'pipe|device|folder|directory' run six.txt --interpret --input x=$wrong
    expect_error 1 'pipe|device|folder|directory' compile six.txt -o p2 --load-ops ./$wrong
    expect_error 1 'pipe|device|folder|directory' vta disasm $wrong
done
cp -r new broken && rm broken/report.json && mkfifo broken/report.json
expect_error 1 'is a pipe' run broken
expect_error 1 'is a pipe' inspect broken
mkdir data && mkfifo data/input_0.pb
expect_error 1 'is a pipe' run six.txt --interpret --data data
check "standard input is still read" sh -c "'$lathe' opt - < six.txt | grep -q s5"

# --- external data: a file below the model's folder, by whatever name
mkdir -p ext/sub && head -c 8 /dev/zero > ext/sub/w0123.bin && head -c 8 /dev/zero > secret.bin
sed 's|\.\./secret\.bin|sub/w0123.bin|' "$top/test/golden/error/onnx/outside.onnx" > ext/model.onnx
expect 0 '' inspect ext/model.onnx
rm ext/sub/w0123.bin && mkfifo ext/sub/w0123.bin
expect_error 1 'w0123.bin.*is a pipe' inspect ext/model.onnx
rm ext/sub/w0123.bin && mkdir ext/sub/w0123.bin
expect_error 1 'w0123.bin.*is a directory' inspect ext/model.onnx
rmdir ext/sub/w0123.bin
expect_error 1 'not in .ext.: sub.w0123.bin' inspect ext/model.onnx
ln -s ../../secret.bin ext/sub/w0123.bin
expect_error 1 'must be a file under' inspect ext/model.onnx
ln -sf /etc/hostname ext/sub/w0123.bin
expect_error 1 'must be a file under' inspect ext/model.onnx
rm -r ext/sub && mkdir sub && mv secret.bin sub/w0123.bin && ln -s ../sub ext/sub
expect_error 1 'must be a file under' inspect ext/model.onnx
rm ext/sub && mv sub ext/other && ln -s other ext/sub
expect 0 '' inspect ext/model.onnx
rm ext/sub && mv ext/other ext/sub

# --- odd characters in names of folders
odd="$work/a b,c'd\"e\$f;g#h&i\`j(k)%l\\m"
mkdir -p "$odd/tmp" && "$lathe" compile -q "$model" -o "$odd/p"
export TMPDIR="$odd/tmp"
expect 0 'probabilities' run "$odd/p"
expect 0 'probabilities' run "$model" --keep "$odd/kept"
check "make in it" make -s -C "$odd/p" CC="${CC:-cc}"
unset TMPDIR
check "no temporary folder is left" test -z "$(ls "$odd/tmp")"
"$lathe" compile -q six.txt -o ./-p
expect 0 'y:' run -- -p
if [ "${LATHE_TIER:-}" != check ]; then # CMake tries compilers for two seconds
    cmake_dir="$work/c d,e'f"
    "$lathe" compile -q "$model" -o "$cmake_dir/p"
    check "cmake in it" sh -c 'cmake -S "$1/p" -B "$1/b" && cmake --build "$1/b" --target tvmgen_default' sh "$cmake_dir"
fi
finish
