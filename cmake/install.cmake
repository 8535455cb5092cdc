# What describes an installed tree to its users: files for pkg-config, and a package for CMake's find_package(lathe).
# They name every place relative to their own, so that the tree can be moved.
# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

set(LATHE_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(LATHE_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lathe)
file(RELATIVE_PATH LATHE_PC_TO_PREFIX /${LATHE_PC_DIR} /)
string(REGEX REPLACE "/$" "" LATHE_PC_TO_PREFIX ${LATHE_PC_TO_PREFIX})

foreach(name lathe lathe_op lathe_vm lathe_loops lathe_vta)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${LATHE_PC_DIR})
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/latheConfig.cmake.in ${CMAKE_BINARY_DIR}/latheConfig.cmake
    INSTALL_DESTINATION ${LATHE_CONFIG_DIR} PATH_VARS LATHE_PC_DIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/latheConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/latheConfig.cmake ${CMAKE_BINARY_DIR}/latheConfigVersion.cmake
    DESTINATION ${LATHE_CONFIG_DIR})
