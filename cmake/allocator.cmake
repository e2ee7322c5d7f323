# The command's malloc: planning makes and drops millions of small pieces, and with jemalloc it takes a quarter to a third less time than with
# glibc's malloc. An archive, so nothing is needed where the command runs. The command alone: a library does not choose its process's malloc.
option(OPFUSE_JEMALLOC "Link the command with jemalloc, where its archive is found and no sanitizer replaces malloc" ON)
find_library(OPFUSE_JEMALLOC_ARCHIVE NAMES libjemalloc_pic.a)
mark_as_advanced(OPFUSE_JEMALLOC_ARCHIVE)

function(opfuse_own_malloc target)
  if(OPFUSE_JEMALLOC AND OPFUSE_JEMALLOC_ARCHIVE AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_link_libraries(${target} PRIVATE ${OPFUSE_JEMALLOC_ARCHIVE})
  endif()
endfunction()
