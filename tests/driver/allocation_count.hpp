// Counts calls of operator new in this program, from any thread.
#pragma once

#include <cstdint>

namespace opfuse::testing_support {

class AllocationCount {
 public:
  AllocationCount();
  int64_t so_far() const;

 private:
  int64_t start_;
};

}  // namespace opfuse::testing_support
