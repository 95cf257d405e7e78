# `cmake --install`: the static library, the public headers under include/vitro/<room>/, and what find_package(vitro) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Not installed: headers whose first sentence begins with "Internal:", which only the library's own sources include.
foreach(room IN LISTS rooms)
  file(GLOB headers RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${room}/*.hpp)
  foreach(header IN LISTS headers)
    file(STRINGS ${header} first_lines LIMIT_COUNT 2)
    if(NOT first_lines MATCHES "// Internal:")
      install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vitro/${room})
    endif()
  endforeach()
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vitro)
install(TARGETS vitro EXPORT vitro-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT vitro-targets NAMESPACE vitro:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/vitro-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/vitro-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/vitro-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vitro-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/vitro-config-version.cmake
        DESTINATION ${package_dir})
