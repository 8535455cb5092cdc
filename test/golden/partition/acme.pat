// What two targets that do not exist take.
pattern acme.conv2d_relu(%x: f32[_, _, _, _], %w: constant f32[_, _, _, _]) {
  %c = nn.conv2d(%x, %w) {groups = 1, dilations = 1}
  %y = nn.relu(%c)
  return %y
} where static(%x)

pattern acme.conv2d(%x: f32[_, _, _, _], %w: constant f32[_, _, _, _]) {
  %c = nn.conv2d(%x, %w) {groups = 1, dilations = 1}
  return %c
} where static(%x)

pattern acme.add(%a: f32, %b: f32) {
  %y = add(%a, %b)
  return %y
} where same_shape(%a, %b)

operator acme.pool(%x: f32) {
  %y = nn.max_pool2d|nn.avg_pool2d(%x) {ceil_mode = 0}
  return %y
}

// A second one, which is asked where acme declines.
pattern brand.relu(%x: f32) {
  %y = nn.relu(%x)
  return %y
}

pattern brand.bias_act(%x: f32|f16, %b: constant _[_, 1, 1]) {
  %s = add(%x, %b)
  %y = optional nn.relu|clip|sigmoid(%s, *)
  return %y
} where per_channel(%b, %s)

// Several results.
pattern twin.both(%x: f32) {
  %e = exp(%x)
  %l = log(%e)
  return %e, %l
}

pattern twin.split(%x, %s: constant i64[_]) {
  %a, %b = split(%x, %s)
  %c = cos(%a)
  return %b, %c
}

pattern pair.exp_add(%x: f32, %y: f32) {
  %e = exp(%x)
  %s = add(%e, %y)
  return %e, %s
}

pattern pair.sqrt(%x: f32) {
  %t = optional tan(%x)
  %s = sqrt(%t)
  return %t, %s
}

// A value that is read twice, inside.
pattern swish.conv2d(%x: f32, %w: constant) {
  %c = nn.conv2d(%x, %w)
  %s = sigmoid(%c)
  %y = multiply(%s, %c)
  return %y
}

pattern open.relu(%x: f32[_, n]) {
  %y = nn.relu(%x)
  return %y
}

pattern open.static(%x: f32) {
  %y = exp(%x)
  return %y
} where static(%x)

pattern open.nonzero(%x) {
  %y = nonzero(%x)
  return %y
}

// Two products of one value, neither of which needs the other.
pattern beside.products(%x, %v: constant, %w: constant) {
  %c = nn.matmul(%x, %w)
  %a = nn.matmul(%x, %v)
  %b = optional nn.relu(%a)
  return %b, %c
}
