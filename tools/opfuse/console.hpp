// What verbs print with: tables, human units, progress on stderr.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/now_ns.hpp"

namespace opfuse::cli {

/// "1.50 MB", "231 kB", "12 B" (powers of ten).
std::string human_bytes(double bytes);
/// "8.18 GFLOP", "236 MFLOP".
std::string human_flops(double flops);
std::string milliseconds(double ms);  ///< three significant digits, "21.4", "0.512"

/// Left-aligned text columns, right-aligned number columns (a header that starts with '>' is right-aligned).
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void row(std::vector<std::string> cells);
  std::string text(int indent = 2) const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

/// A line on stderr that shows the running step; a bar when it lasts longer than a second and stderr is a
/// terminal. Quiet when stderr is not a terminal.
void show_progress(const std::string& step, size_t done, size_t total);
void finish_progress();

/// Prints "title ... 1.2 s" on stderr when destroyed.
class StepTimer {
 public:
  explicit StepTimer(std::string title);
  ~StepTimer();
  double seconds() const;

 private:
  std::string title_;
  int64_t start_ns_;
};

}  // namespace opfuse::cli
