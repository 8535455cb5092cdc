# lathe_embed(OUT): turns the runtime's sources, and the files named in src/driver/embedded_files.txt
# (one path from the top of the tree per line, # starts a comment), into one C file of byte arrays.
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
            list(APPEND files ${CMAKE_SOURCE_DIR}/${line})
        endforeach()
    endif()
    list(REMOVE_DUPLICATES files)
    list(SORT files)
    set(pairs "")
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
