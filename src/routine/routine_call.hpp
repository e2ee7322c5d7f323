// Which routine of the runtime computes a value whose size only data say, and which symbols that size gives values to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opfuse {

struct RoutineCall {
  std::string name;                    ///< "non_zero"; a row of routine/routine.cpp
  std::vector<int64_t> settings{};     ///< what the routine reads of attributes
  std::vector<std::string> defines{};  ///< dimension symbols, in the order in which the routine gives them
};

}  // namespace opfuse
