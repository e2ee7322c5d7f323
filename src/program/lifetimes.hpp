// When a buffer's memory is in use: between the first and the last launch that touch it or a view of it, through all of
// a body that shares it with what is outside.
#pragma once

#include "program/program.hpp"

namespace opfuse {

struct Lifetime {
  int first = -1, last = -1;  ///< launch indices; -1: never used
};

/// By buffer; a view's uses count for its root, views themselves have none.
std::vector<Lifetime> lifetimes(const Program& program);

}  // namespace opfuse
