# What `cmake --install` writes, and `uninstall`. Include it before the layers.
#
# Only the program is a public name. What it loads or starts is in a private folder, which the program
# finds relative to its own: a moved prefix, DESTDIR and links work.
include(GNUInstallDirs)
set(MEMTRACE_PRIVATE_DIR ${CMAKE_INSTALL_LIBEXECDIR}/memtrace)
# Both folders may be absolute (Nix, Guix). GNUInstallDirs gives absolute names of relative ones.
file(RELATIVE_PATH MEMTRACE_PRIVATE_FROM_PROGRAM
  ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR}/memtrace/)

# Installs a library or a program that only memtrace uses.
function(mt_install_private target)
  install(TARGETS ${target}
    RUNTIME DESTINATION ${MEMTRACE_PRIVATE_DIR}
    LIBRARY DESTINATION ${MEMTRACE_PRIVATE_DIR})
endfunction()

install(FILES LICENSE NOTICE CHANGELOG.md README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
    -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/uninstall.cmake
  COMMENT "removing the files of install_manifest.txt")
