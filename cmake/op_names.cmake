# What operator libraries (include/lathe/op.h) need of the compiler: LATHE_OP_HEADERS, the headers below src that op.h
# includes, and second names for the functions that they call (include/lathe/op_names.h), as the linker takes them:
#   LATHE_OP_ALIASES  a linker script that adds them to a library or a program
#   LATHE_OP_RENAMED  the pairs, for objcopy
# SPDX-License-Identifier: Apache-2.0
set(LATHE_OP_HEADERS
    base/arena.h base/compiler.h base/diag.h base/file.h base/ptr_map.h base/temp.h base/text.h base/vec.h
    type/attr.h type/cpu_model.h type/dim.h type/dtype.h type/list.h type/model.h type/target.h type/tensor.h
    type/type.h
    graph/graph.h graph/graph_ops.def graph/op.h graph/operand.h
    te/primitives.def te/schedule.h te/te.h te/te_op.h
    tir/build.h tir/intrin.h tir/simplify.h tir/tir.h tir/walk.h)
set(LATHE_OP_ALIASES ${CMAKE_BINARY_DIR}/op_names.ld)
set(LATHE_OP_RENAMED ${CMAKE_BINARY_DIR}/op_names.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/lathe/op_names.h)
file(STRINGS ${CMAKE_SOURCE_DIR}/include/lathe/op_names.h lathe_op_rows REGEX "^#define [a-z0-9_]+ lathe_op_")
set(lathe_op_aliases "/* A function that is not there any more: run scripts/op_names.sh. */\n")
set(lathe_op_renamed "")
foreach(row IN LISTS lathe_op_rows)
    string(REGEX REPLACE "^#define ([a-z0-9_]+) ([a-z0-9_]+)$" "\\2 = \\1;\n" alias "${row}")
    string(REGEX REPLACE "^#define ([a-z0-9_]+) ([a-z0-9_]+)$" "\\1 \\2\n" renamed "${row}")
    string(APPEND lathe_op_aliases "${alias}")
    string(APPEND lathe_op_renamed "${renamed}")
endforeach()
file(CONFIGURE OUTPUT ${LATHE_OP_ALIASES} CONTENT "${lathe_op_aliases}" @ONLY)
file(CONFIGURE OUTPUT ${LATHE_OP_RENAMED} CONTENT "${lathe_op_renamed}" @ONLY)
