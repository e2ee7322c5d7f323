// Where a program's time should go by the cost model, what bounds it there, and how evenly threads are filled.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "driver/compilation.hpp"
#include "driver/predict_launches.hpp"
#include "report.hpp"

namespace opfuse::cli {

/// The `most` launches with most predicted time: what bounds each, and why it is apart from its neighbours.
std::string why_slow_text(const Compilation& compilation, size_t most);

/// {"name", "sources", "predicted_us", "bound", "bytes"} for each launch, in order.
Json launches_json(const Compilation& compilation);

/// How the parts of the kernels fill `threads`. The compilation is taken to Milestone::built, since emitters cut parts.
struct Balance {
  double share = 1;  ///< of ideal
  struct Launch {
    std::string name;
    int64_t parts = 1;
    double share = 1, lost_microseconds = 0;
  };
  std::vector<Launch> worst;  ///< most time lost first
};
Balance balance_on(Compilation& compilation, int threads);
std::string text_of(const Balance& balance, int threads, size_t most);
Json json_of(const Balance& balance, int threads);

}  // namespace opfuse::cli
