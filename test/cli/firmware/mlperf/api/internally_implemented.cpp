// internally_implemented.cpp: a stand-in for the harness of MLPerf Tiny: one inference on the bytes of one float.
// SPDX-License-Identifier: Apache-2.0
#include "internally_implemented.h"

#include "submitter_implemented.h"

void ee_benchmark_initialize(void) {
  th_timestamp_initialize();
  th_load_tensor();
  th_infer();
  th_results();
  exit(0);
}

size_t ee_get_buffer(uint8_t *buffer, size_t most) {
  const float ten = 10;
  memcpy(buffer, &ten, most < sizeof ten ? most : sizeof ten);
  return sizeof ten;
}

void ee_serial_callback(char c) { (void)c; }
void ee_serial_command_parser_callback(char *command) { (void)command; }
