# What wheels are made of (./dev wheel): the objects of this build linked once more, with LLVM and {fmt} inside. Built on
# request only; needs LLVM's static libraries and what those link (libzstd-dev).
find_package(zstd QUIET)
if(NOT TARGET zstd::libzstd_shared OR NOT TARGET opfuse_llvm)
  return()
endif()
llvm_map_components_to_libnames(llvm_static core passes x86codegen x86asmparser object mc target)
set(fmt_inside ${PROJECT_SOURCE_DIR}/src/capi/fmt_inside.cpp)

add_library(opfuse_portable SHARED EXCLUDE_FROM_ALL ${fmt_inside})
target_link_libraries(opfuse_portable PRIVATE -Wl,--whole-archive $<TARGET_FILE:driver> $<TARGET_FILE:runtime> $<TARGET_FILE:optimize>
  -Wl,--no-whole-archive optimize)
set_target_properties(opfuse_portable PROPERTIES OUTPUT_NAME opfuse VERSION ${PROJECT_VERSION} SOVERSION 0)

add_library(opfuse_llvm_portable SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:opfuse_llvm> ${fmt_inside})
target_link_libraries(opfuse_llvm_portable PRIVATE cpu ${llvm_static})
target_link_options(opfuse_llvm_portable PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
set_target_properties(opfuse_llvm_portable PROPERTIES OUTPUT_NAME opfuse_llvm)

add_executable(opfuse_cli_portable EXCLUDE_FROM_ALL $<TARGET_OBJECTS:opfuse_cli> ${fmt_inside})
target_link_libraries(opfuse_cli_portable PRIVATE report optimize object proof driver zoo onnx fusion profile runtime reduce)
set_target_properties(opfuse_cli_portable PROPERTIES OUTPUT_NAME opfuse)

foreach(part opfuse_portable opfuse_llvm_portable opfuse_cli_portable)
  target_link_options(${part} PRIVATE -Wl,--as-needed)
  set_target_properties(${part} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/portable/lib
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/portable/bin)
endforeach()
