# opfuse_folder(NAME DEPS...): one static library per folder of src/, so that target_link_libraries is
# the dependency diagram of ARCHITECTURE.md. Sources are the .cpp files of the folder and of those in it that are not rooms
# of their own.
set(OPFUSE_ROOMS_WITHIN fusion/user fusion/explain cpu/emit)
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
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${path}/*.cpp)
  foreach(room ${OPFUSE_ROOMS_WITHIN})
    if(NOT room STREQUAL path)
      list(FILTER sources EXCLUDE REGEX "/src/${room}/")
    endif()
  endforeach()
  if(sources)
    add_library(${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  string(REPLACE "/" "_" links "${ARGN}")
  target_link_libraries(${name} ${scope} opfuse_flags fmt::fmt Threads::Threads ${links})
endfunction()
