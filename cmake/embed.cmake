# lathe_embed(OUT): turns the runtime's sources, and the files named in src/driver/embedded_files.txt
# (one path from the top of the tree per line, in which * stands for any part of a name, and # starts a comment), into
# one C file of byte arrays.
# dagre, which the pages lay out graphs with, comes from the system where it is installed, and is named dagre.js.
# A file below runtime/tvmrt keeps its path from there as its name; any other keeps its path from the top.
# SPDX-License-Identifier: Apache-2.0

add_executable(lathe_embed ${CMAKE_CURRENT_LIST_DIR}/embed.c)
target_link_libraries(lathe_embed PRIVATE lathe_flags)

function(lathe_embed out)
    file(GLOB files CONFIGURE_DEPENDS
        ${CMAKE_SOURCE_DIR}/runtime/tvmrt/tvmrt.h
        ${CMAKE_SOURCE_DIR}/runtime/tvmrt/tvmrt.c
        ${CMAKE_SOURCE_DIR}/runtime/tvmrt/tvmrt_port_*.[ch])
    file(GLOB list CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/driver/embedded_files.txt)
    if(list)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
        file(STRINGS ${list} lines REGEX "^[^#]")
        foreach(line IN LISTS lines)
            string(STRIP "${line}" line)
            file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${line})
            list(APPEND files ${found})
        endforeach()
    endif()
    list(REMOVE_DUPLICATES files)
    list(SORT files)
    set(pairs "")
    find_file(LATHE_DAGRE dagre.min.js DOC "dagre, which lays out the graphs of pages"
        PATHS /usr/lib/python3/dist-packages/xstatic/pkg/dagre/data /usr/share/nodejs/dagre/dist NO_DEFAULT_PATH)
    if(LATHE_DAGRE AND NOT EXISTS "${LATHE_DAGRE}")
        message(FATAL_ERROR "LATHE_DAGRE names no file: ${LATHE_DAGRE}. -DLATHE_DAGRE=OFF builds without dagre.")
    elseif(LATHE_DAGRE)
        list(APPEND pairs dagre.js ${LATHE_DAGRE})
    else()
        message(STATUS "No dagre (Debian: python3-xstatic-dagre): pages draw their graphs in one column")
    endif()
    foreach(file IN LISTS files)
        file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${file})
        string(REGEX REPLACE "^runtime/tvmrt/" "" name ${name})
        list(APPEND pairs ${name} ${file})
    endforeach()
    add_custom_command(OUTPUT ${out}
        COMMAND lathe_embed ${out} ${pairs}
        DEPENDS lathe_embed ${files}
        COMMENT "Embedding the runtime's sources" VERBATIM)
endfunction()
