// Arduino.h: a stand-in for what the sketches of packages use, on standard output.
// SPDX-License-Identifier: Apache-2.0
#ifndef STUB_ARDUINO_H
#define STUB_ARDUINO_H
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

struct StubSerial {
  void begin(long) {}
  void print(const char *s) { printf("%s", s); }
  void print(long v) { printf("%ld", v); }
  void println(const char *s) { printf("%s\n", s); }
  void println(double v) { printf("%.2f\n", v); }
};
static StubSerial Serial;
static inline void delay(unsigned long) { exit(0); }
#endif
