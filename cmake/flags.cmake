# Compiler flags of the whole tree, as one interface target: warnings, sanitizers, floating-point contract.
# SPDX-License-Identifier: Apache-2.0

set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g" CACHE STRING "" FORCE) # asserts stay on: they are part of the checks

add_library(lathe_flags INTERFACE)
target_compile_definitions(lathe_flags INTERFACE _XOPEN_SOURCE=700)
target_compile_options(lathe_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    -ffile-prefix-map=${CMAKE_SOURCE_DIR}/= # no path of the build machine in the program
    -ffp-contract=off # the interpreter is the oracle: the same numbers on every host
)
if(LATHE_WERROR)
    target_compile_options(lathe_flags INTERFACE -Werror)
endif()
if(LATHE_SANITIZE)
    target_compile_options(lathe_flags INTERFACE
        -fsanitize=${LATHE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
        -O1 -g1) # half the time of -O2 -g; what sanitizers see is the same
    target_link_options(lathe_flags INTERFACE -fsanitize=${LATHE_SANITIZE})
endif()
if(LATHE_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "LATHE_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang-19")
    endif()
    target_compile_options(lathe_flags INTERFACE -fsanitize=fuzzer-no-link
        -O0) # half the time of -O1 to build; CMakeLists.txt optimises the few files that runs spend theirs in
endif()
if(LATHE_STEPS)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "LATHE_STEPS needs clang: configure with -DCMAKE_C_COMPILER=clang-19")
    endif()
    add_library(lathe_steps STATIC ${CMAKE_SOURCE_DIR}/test/steps/count.c)
    set_target_properties(lathe_steps PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(lathe_flags INTERFACE -fsanitize-coverage=trace-pc-guard)
    target_link_libraries(lathe_flags INTERFACE lathe_steps)
endif()
