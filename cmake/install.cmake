# Installs the CLI, the library, the code generator it opens on first use, the headers and the CMake package.
include(CMakePackageConfigHelpers)
install(TARGETS opfuse opfuse_runtime EXPORT opfuseTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET opfuse_llvm)
  install(TARGETS opfuse_llvm LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY include/opfuse DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(DIRECTORY targets DESTINATION ${CMAKE_INSTALL_DATADIR}/opfuse)
install(DIRECTORY examples/npu examples/tile DESTINATION ${CMAKE_INSTALL_DATADIR}/opfuse/examples)
install(EXPORT opfuseTargets NAMESPACE opfuse:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/opfuse)
configure_package_config_file(cmake/opfuseConfig.cmake.in ${PROJECT_BINARY_DIR}/opfuseConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/opfuse)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/opfuseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/opfuseConfig.cmake ${PROJECT_BINARY_DIR}/opfuseConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/opfuse)
install(FILES tools/opfuse/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME opfuse)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/opfuse)
