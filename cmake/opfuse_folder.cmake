# opfuse_folder(NAME DEPS...): one static library per folder of src/, so that target_link_libraries is
# the dependency diagram of ARCHITECTURE.md. Sources are the .cpp files of the folder and of those in it that are not rooms
# of their own.
set(OPFUSE_ROOMS_WITHIN fusion/user fusion/explain cpu/emit)
add_library(opfuse_flags INTERFACE)
# -Wrestrict, -Wstringop-overflow, -overread, -Warray-bounds: false positives on std::string in GCC 12 (gcc.gnu.org/PR105651); with precompiled
# headers GCC reports what it keeps quiet about system headers otherwise.
target_compile_options(opfuse_flags INTERFACE -Wall -Wextra -Wno-restrict -Wno-missing-field-initializers "$<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds>" -fvisibility=hidden -fvisibility-inlines-hidden)
# GCC collects its garbage the sooner the larger a precompiled header was; with 1 GiB it hardly does, and is a tenth faster.
target_compile_options(opfuse_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1048576>)
# Clang's check of indirect calls reads a signature in front of the function; generated code has none.
if(CMAKE_CXX_FLAGS MATCHES "fsanitize" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(opfuse_flags INTERFACE -fno-sanitize=function)
endif()
if(OPFUSE_WERROR)
  target_compile_options(opfuse_flags INTERFACE -Werror)
endif()
target_include_directories(opfuse_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)

# What nearly all sources read first, parsed once for each level of optimisation (GCC asks for the same). The standard
# library and fmt alone: a header of ours would rebuild everything with each of its changes.
set(OPFUSE_COMMON_HEADERS <algorithm> <array> <cmath> <functional> <limits> <map> <memory> <optional> <set> <span> <string>
  <string_view> <unordered_map> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)
# Rooms with loops over elements take the release build's -O3; elsewhere -O2 costs a seventh less to compile.
set(OPFUSE_LOOP_ROOMS tensor expr ops region interp runtime profile proof quantize)
set(OPFUSE_REST_OPTIONS $<$<CONFIG:Release>:-O2>)
if(NOT OPFUSE_INSTALLED)  # else there is nothing to compile but the Python module
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/common_headers.cpp CONTENT "")
  foreach(kind loops rest)
    add_library(opfuse_headers_of_${kind} OBJECT ${PROJECT_BINARY_DIR}/common_headers.cpp)
    target_link_libraries(opfuse_headers_of_${kind} PRIVATE opfuse_flags fmt::fmt Threads::Threads)
    target_precompile_headers(opfuse_headers_of_${kind} PRIVATE ${OPFUSE_COMMON_HEADERS})
  endforeach()
  target_compile_options(opfuse_headers_of_rest PRIVATE ${OPFUSE_REST_OPTIONS})
endif()

function(opfuse_folder path)
  string(REPLACE "/" "_" name ${path})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${path}/*.cpp)
  foreach(room ${OPFUSE_ROOMS_WITHIN})
    if(NOT room STREQUAL path)
      list(FILTER sources EXCLUDE REGEX "/src/${room}/")
    endif()
  endforeach()
  if(sources)
    add_library(${name} STATIC ${sources})
    opfuse_unity(${name} ${sources})
    set(scope PUBLIC)
    if(path IN_LIST OPFUSE_LOOP_ROOMS)
      target_precompile_headers(${name} REUSE_FROM opfuse_headers_of_loops)
    else()
      target_compile_options(${name} PRIVATE ${OPFUSE_REST_OPTIONS})
      target_precompile_headers(${name} REUSE_FROM opfuse_headers_of_rest)
    endif()
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  string(REPLACE "/" "_" links "${ARGN}")
  target_link_libraries(${name} ${scope} opfuse_flags fmt::fmt Threads::Threads ${links})
endfunction()
