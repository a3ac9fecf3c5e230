# What `make install` puts where, and the package a stranger finds with find_package(cautious) or pkg-config.
# The kernels' object libraries are part of the archive; headers and the archive depend on OpenMP and a BLAS only. The
# programs install themselves (src/cli, lab).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cautious)

install(TARGETS cautious EXPORT cautious-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/cautious DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING
  PATTERN "*.h" PATTERN "torch.h" EXCLUDE)
install(EXPORT cautious-targets NAMESPACE cautious:: DESTINATION ${package_dir})
install(TARGETS cautious_c EXPORT cautious-c-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT cautious-c-targets NAMESPACE cautious:: DESTINATION ${package_dir})
if(CAUTIOUS_TORCH)
  install(TARGETS cautious_torch EXPORT cautious-torch-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/include/cautious/torch.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cautious)
  install(EXPORT cautious-torch-targets NAMESPACE cautious:: DESTINATION ${package_dir})
endif()

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/cautious-config.cmake.in ${PROJECT_BINARY_DIR}/cautious-config.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cautious-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cautious-config.cmake ${PROJECT_BINARY_DIR}/cautious-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/blas.cmake
  DESTINATION ${package_dir})

# pkg-config is for the C interface; its private libraries are what the archive leaves to the final link. The prefix is
# where the file is found, so that the whole can be moved.
file(RELATIVE_PATH CAUTIOUS_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" CAUTIOUS_PC_PREFIX ${CAUTIOUS_PC_PREFIX})
get_target_property(CAUTIOUS_PC_PRIVATE cautious_blas INTERFACE_LINK_LIBRARIES)
get_filename_component(folder ${CAUTIOUS_BLAS_LIBRARY} DIRECTORY)
list(TRANSFORM OpenMP_CXX_LIB_NAMES PREPEND -l OUTPUT_VARIABLE threads)
list(JOIN CAUTIOUS_PC_PRIVATE " " CAUTIOUS_PC_PRIVATE)
list(JOIN threads " " threads)
string(APPEND CAUTIOUS_PC_PRIVATE " -Wl,-rpath,${folder} ${threads} -lstdc++ -lm")
configure_file(${PROJECT_SOURCE_DIR}/cmake/cautious.pc.in ${PROJECT_BINARY_DIR}/cautious.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cautious.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(CAUTIOUS_DEVELOPER)  # the target `manual`
  install(DIRECTORY ${PROJECT_BINARY_DIR}/manual/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
  install(FILES ${PROJECT_BINARY_DIR}/manual/cautious.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME cautious OPTIONAL)
endif()
