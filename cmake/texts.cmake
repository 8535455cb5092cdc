# The manual page and the completions for shells, which the program prints: a part of every build, as the rule for
# installing names them. They are left out where the program cannot run.
# SPDX-License-Identifier: Apache-2.0
add_custom_target(texts ALL)
if(CMAKE_CROSSCOMPILING)
    return()
endif()

# lathe_text(FILE FOLDER ARGUMENTS...): what `lathe ARGUMENTS...` prints is installed as FOLDER/FILE.
function(lathe_text file folder)
    set(made ${CMAKE_BINARY_DIR}/texts/${file})
    add_custom_command(OUTPUT ${made} DEPENDS lathe VERBATIM
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/texts
        COMMAND lathe ${ARGN} > ${made})
    add_custom_target(text_${file} DEPENDS ${made})
    add_dependencies(texts text_${file})
    install(FILES ${made} DESTINATION ${folder})
endfunction()

lathe_text(lathe.1 ${CMAKE_INSTALL_MANDIR}/man1 man)
lathe_text(lathe ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
lathe_text(_lathe ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
lathe_text(lathe.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
