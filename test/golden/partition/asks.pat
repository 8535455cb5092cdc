pattern acme.relu(%x: f32|f16[_, 3, n, n, *]) {
  %y = nn.relu(%x)
  return %y
}

pattern acme.clip(%x, %lo: constant = 0.0, %hi) {
  %y = clip(%x, %lo, %hi?)
  return %y
}

pattern acme.pool(%x) {
  %y = nn.max_pool2d(%x) {pool_size = [2, 2] | [3, 3], strides <= 2, pads = 0, ceil_mode != 1}
  return %y
}

pattern acme.conv(%x, %w) {
  %y = nn.conv2d(%x, %w) {groups != 1}
  return %y
} where depthwise(%x, %w)

pattern acme.scaled(%x, %s: constant f32) {
  %y = divide(%x, %s) : f32[_]
  return %y
} where power_of_two(%s)

pattern acme.mixed(%x) {
  %y = nn.avg_pool2d(%x) {strides = [1, 3] | 1 | 2, pads = [0, 0, 1, 1] | 0, dilations != 3 | [2, 1]}
  return %y
}

pattern acme.left(%x) {
  %y = clip(%x, _, _)
  return %y
}
