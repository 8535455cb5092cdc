# A network with convolutions and products that a GPU's library takes; what stays is between them. Sourced, not run.
# SPDX-License-Identifier: Apache-2.0
constant() { # NAME SHAPE...: a line of a graph, numbers between -0.3 and 0.3
    local name=$1
    shift
    awk -v name="$name" -v shape="$*" 'BEGIN {
        n = split(shape, d, " "); count = 1; seed = length(shape) * 7919 + 17
        for (i = 1; i <= n; i++) { count *= d[i]; dims = dims (i > 1 ? ", " : "") d[i]; seed += d[i] * i * 131 }
        printf "  %%%s = constant f32[%s] dense [", name, dims
        for (i = 0; i < count; i++) { seed = (seed * 1103 + 12345) % 65536; printf "%s%.4f", i ? ", " : "", (seed / 65536 - 0.5) * 0.6 }
        print "]" }'
}
graph() {
    echo 'func @main(%status: f32[2, 3, 9, 11]) {' # a name that C code around it might have
    constant w 70 3 3 3
    constant b 70 1 1
    constant w1 8 70 1 1
    constant m 48 65
    constant c 65
    constant m2 7 65
    constant c2 7
    cat << 'END'
  %n = negative(%status)
  %h = nn.conv2d(%n, %w) {strides = [2, 2], pads = [1, 0, 1, 2]}
  %s = add(%h, %b)
  %r = nn.relu(%s)
  %d = nn.conv2d(%r, %w1)
  %p = nn.max_pool2d(%d) {pool_size = [2, 2], strides = [2, 2]}
  %f = reshape(%d) : f32[10, 48]
  %l = nn.matmul(%f, %m)
  %lc = add(%l, %c)
  %g = gelu(%lc)
  %o = nn.matmul(%g, %m2) {transpose_b = 1}
  %oc = add(%o, %c2)
  return %oc, %p, %r
}
END
}
