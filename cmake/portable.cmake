# What wheels are made of (./dev wheel): the objects of this build linked once more, with LLVM and {fmt} inside. Built on
# request only; needs LLVM's static libraries and what those link (libzstd-dev).
find_package(zstd QUIET)
if(NOT TARGET zstd::libzstd_shared OR NOT TARGET opfuse_llvm)
  return()
endif()
llvm_map_components_to_libnames(llvm_static core passes x86codegen x86asmparser object mc target)
set(fmt_inside ${PROJECT_SOURCE_DIR}/src/capi/fmt_inside.cpp)

# What they link is what the originals link, whatever that becomes.
get_target_property(library_links opfuse LINK_LIBRARIES)
get_target_property(command_links opfuse_cli LINK_LIBRARIES)
add_library(opfuse_portable SHARED EXCLUDE_FROM_ALL ${fmt_inside})
target_link_libraries(opfuse_portable PRIVATE ${library_links})
set_target_properties(opfuse_portable PROPERTIES OUTPUT_NAME opfuse VERSION ${PROJECT_VERSION} SOVERSION 0)

add_library(opfuse_llvm_portable SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:opfuse_llvm> ${fmt_inside})
target_link_libraries(opfuse_llvm_portable PRIVATE cpu ${llvm_static})
target_link_options(opfuse_llvm_portable PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
set_target_properties(opfuse_llvm_portable PROPERTIES OUTPUT_NAME opfuse_llvm)

add_executable(opfuse_cli_portable EXCLUDE_FROM_ALL $<TARGET_OBJECTS:opfuse_cli> ${fmt_inside})
target_link_libraries(opfuse_cli_portable PRIVATE ${command_links})
# Not called opfuse: Ninja would take that name for the library's target.
set_target_properties(opfuse_cli_portable PROPERTIES OUTPUT_NAME opfuse-command)

foreach(part opfuse_portable opfuse_llvm_portable opfuse_cli_portable)
  target_link_options(${part} PRIVATE -Wl,--as-needed)
  set_target_properties(${part} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/portable/lib
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/portable/bin)
endforeach()
