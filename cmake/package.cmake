# `cpack -G DEB` and `cpack -G TGZ`: ./dev deb calls them.
set(CPACK_PACKAGE_NAME memtrace)
set(CPACK_PACKAGE_VENDOR "the memtrace authors")
set(CPACK_PACKAGE_CONTACT "the memtrace authors <memtrace@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "records and explains the memory of GPU programs")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"memtrace records the GPU memory allocations of unchanged CUDA programs, replays
them through simulated allocators, and shows which phase, line of code and kind
of tensor holds the peak, what would reduce it, and by how many bytes.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME memtrace-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3, zstd")
# dpkg-shlibdeps also reads the modules, so the package depends on cairo and libdw.
if(MEMTRACE_COMPRESS_MAN)
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/changelog.gz
    COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/packaging/debian/changelog
      > ${CMAKE_BINARY_DIR}/changelog.gz
    DEPENDS ${PROJECT_SOURCE_DIR}/packaging/debian/changelog VERBATIM)
  add_custom_target(debian_changelog ALL DEPENDS ${CMAKE_BINARY_DIR}/changelog.gz)
  install(FILES ${CMAKE_BINARY_DIR}/changelog.gz ${PROJECT_SOURCE_DIR}/packaging/debian/copyright
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
include(CPack)
