// submitter_implemented.h: a stand-in for the declarations of MLPerf Tiny that the submitter's part implements.
// SPDX-License-Identifier: Apache-2.0
#ifndef STUB_SUBMITTER_IMPLEMENTED_H
#define STUB_SUBMITTER_IMPLEMENTED_H
#define EE_MSG_TIMESTAMP      "m-lap-us-%lu\r\n"
#define EE_MSG_TIMESTAMP_MODE "m-timestamp-mode-performance\r\n"
#define MAX_DB_INPUT_SIZE     (96 * 96 * 3)
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void th_load_tensor();
void th_results();
void th_infer();
void th_timestamp(void);
void th_printf(const char *fmt, ...);
char th_getchar();
void th_serialport_initialize(void);
void th_timestamp_initialize(void);
void th_final_initialize(void);
void th_pre();
void th_post();
void th_command_ready(char volatile *msg);
int th_strncmp(const char *a, const char *b, size_t n);
char *th_strncpy(char *to, const char *from, size_t n);
size_t th_strnlen(const char *s, size_t most);
char *th_strcat(char *to, const char *from);
char *th_strtok(char *s, const char *between);
int th_atoi(const char *s);
void *th_memset(void *to, int c, size_t n);
void *th_memcpy(void *to, const void *from, size_t n);
int th_vprintf(const char *format, va_list ap);
#endif
