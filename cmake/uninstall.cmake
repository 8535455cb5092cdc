# Removes what the last `make install` wrote, by its list:
#     cmake -DMANIFEST=FILE [-DDESTDIR=DIR] [-DPREFIX=DIR] -P uninstall.cmake
# With PREFIX nothing is removed when that install was to another place. A folder that this leaves empty goes as well,
# if it is one of Lathe's own.
# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.22)

if(NOT EXISTS ${MANIFEST})
    message(FATAL_ERROR "There is no ${MANIFEST}: nothing was installed from this folder.")
endif()
file(STRINGS ${MANIFEST} names)
foreach(name IN LISTS names)
    string(FIND "${name}" "${PREFIX}/" at)
    if(PREFIX AND NOT at EQUAL 0)
        message(FATAL_ERROR "The last `make install` wrote ${name}, which is not below ${PREFIX}.")
    endif()
endforeach()
foreach(name IN LISTS names)
    set(path "${DESTDIR}${name}")
    if(EXISTS "${path}" OR IS_SYMLINK "${path}")
        file(REMOVE "${path}")
        message(STATUS "Removed ${path}")
    endif()
    get_filename_component(folder "${path}" DIRECTORY)
    while(folder MATCHES "/lathe(/|$)")
        file(GLOB left LIST_DIRECTORIES true "${folder}/*")
        if(left OR NOT IS_DIRECTORY "${folder}")
            break()
        endif()
        file(REMOVE_RECURSE "${folder}")
        get_filename_component(folder "${folder}" DIRECTORY)
    endwhile()
endforeach()
