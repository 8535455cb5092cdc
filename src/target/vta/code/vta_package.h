/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of a model as C for packages and modules: the code generator of the target `vta`. */
#ifndef LATHE_CODEGEN_VTA_VTA_PACKAGE_H
#define LATHE_CODEGEN_VTA_VTA_PACKAGE_H
#include "target/vta/code/vta_code.h"
#include "prog/source.h"

/* target_codegen_fn: each region lowered by the target's hook, captured, and a C function over pointers of the host
 * that copies its operands to the device's memory, replays and copies the results back. That memory is one static array
 * of the file: first what every call needs, shared by all regions, then the constants of each, which are copied once.
 * No heap, no recording. The device is vta_host_acquire's. */
bool vta_package_codegen(compiler *c, const struct target *t, struct prog_source *out);
/* module.c: the same for modules, by recorders: buffers of the published run-time, which must be loaded where the
 * module is: the process links libvta, or has opened it with its symbols for all. */
bool vta_module_codegen(compiler *c, struct prog_source *out);

/* region.c, of both. The loops of r, lowered by the target's hook, and, where `captured` is wanted, their stream. What
 * the device cannot do, or has no room for, the CPU does: then r is declined, with a warning that says why. false: the
 * compile ends. */
bool vta_region_lower(compiler *c, const prog_source *s, prog_region *r, vta_code_captured *captured);
/* f: the region as it was lowered. Parameter i is a constant of the program: it is copied once. */
bool vta_region_is_constant(const prog_region *r, const tir_func *f, uint32_t i);
/* "int32_t SYMBOL(const T *p0, ..., T *p2)": the function over pointers of the host. */
void vta_region_print_prototype(writer *w, const prog_region *r, const tir_func *f);
#endif
