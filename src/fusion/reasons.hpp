// The table of the ledger's codes: what each means, and what flips it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fusion/ledger.hpp"

namespace opfuse {

struct Reason {
  std::string_view code, meaning;
  std::string_view change;  ///< with {producer} and {consumer}; empty: no change flips it
  bool of_setting = false;  ///< a setting refuses what may be one launch without it
};

std::span<const Reason> reasons();
const Reason* find_reason(std::string_view code);
bool is_of_setting(std::string_view code);

inline constexpr const char* kNoChangeFlips = "no_change_flips";
/// The smallest change that joins the two, to be run or made; kNoChangeFlips where there is none.
std::string change_for(const EdgeVerdict& edge);

}  // namespace opfuse
