/* model_const.c: the constants of a model as one object, taken byte for byte from a binary file by the assembler, so
 * that a build needs no time for them whatever their size. The file is looked for in the include folders (-Isrc).
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>

#if defined(__APPLE__)
#define CONST_SECTION    ".const_data\n"
#define CONST_NAME(name) "_" #name
#define CONST_RESTORE    ".text\n"
#else
#define CONST_SECTION    ".pushsection .rodata.tvmgen_default,\"a\"\n"
#define CONST_NAME(name) #name
#define CONST_RESTORE    ".popsection\n"
#endif

/* clang-format off */
/* .balign and not .align, which counts bytes on some targets and powers of two on others. */
__asm__(CONST_SECTION
        ".globl " CONST_NAME(tvmgen_default_const_data) "\n"
        ".balign 64\n"
        CONST_NAME(tvmgen_default_const_data) ":\n"
        ".incbin \"default_const.bin\"\n"
        ".globl " CONST_NAME(tvmgen_default_const_data_end) "\n"
        CONST_NAME(tvmgen_default_const_data_end) ":\n"
        ".byte 0\n" /* so that an empty file gives two distinct objects too */
        CONST_RESTORE);
/* clang-format on */

extern const uint8_t tvmgen_default_const_data[], tvmgen_default_const_data_end[];

/* Where the constants are; NULL when the file does not have the size that the compiler wrote. */
const void *tvmgen_default_get_const_workspace(void);
const void *tvmgen_default_get_const_workspace(void)
{
    return (uintptr_t)tvmgen_default_const_data_end - (uintptr_t)tvmgen_default_const_data == TVMGEN_DEFAULT_CONST_SIZE
               ? tvmgen_default_const_data
               : NULL;
}
