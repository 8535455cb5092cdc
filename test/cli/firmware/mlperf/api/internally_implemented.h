// internally_implemented.h: a stand-in for the harness of MLPerf Tiny: the calls that the submitter's part makes.
// SPDX-License-Identifier: Apache-2.0
#ifndef STUB_INTERNALLY_IMPLEMENTED_H
#define STUB_INTERNALLY_IMPLEMENTED_H
#include <stddef.h>
#include <stdint.h>

void ee_benchmark_initialize(void);
size_t ee_get_buffer(uint8_t *buffer, size_t most);
void ee_serial_callback(char c);
void ee_serial_command_parser_callback(char *command);
#endif
