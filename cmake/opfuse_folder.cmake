# opfuse_folder(NAME DEPS...): one static library per folder of src/, so that target_link_libraries is
# the dependency diagram of ARCHITECTURE.md. Sources are the folder's own .cpp files.
add_library(opfuse_flags INTERFACE)
# -Wrestrict: false positives on std::string in GCC 12 (gcc.gnu.org/PR105651).
target_compile_options(opfuse_flags INTERFACE -Wall -Wextra -Wno-restrict -Wno-missing-field-initializers -fvisibility=hidden -fvisibility-inlines-hidden)
if(OPFUSE_WERROR)
  target_compile_options(opfuse_flags INTERFACE -Werror)
endif()
target_include_directories(opfuse_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)

function(opfuse_folder path)
  string(REPLACE "/" "_" name ${path})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${path}/*.cpp)
  if(path STREQUAL "fusion")
    file(GLOB patterns CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/fusion/patterns/*.cpp)
    list(APPEND sources ${patterns})
  endif()
  if(sources)
    add_library(${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(${name} ${scope} opfuse_flags fmt::fmt Threads::Threads ${ARGN})
endfunction()
