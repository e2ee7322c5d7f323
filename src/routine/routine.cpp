// The table of routines, and what several of them need.
#include "routine/routine.hpp"

#include <algorithm>
#include <cstring>

#include "base/fail.hpp"
#include "routine/rows.hpp"

namespace opfuse {
namespace {

struct Row {
  std::string_view name;
  size_t operands, results, most_settings;
  RoutineResult (*run)(Settings, RoutineOperands);
};

constexpr size_t kAnyRank = 64;

constexpr Row kRows[] = {
    {"choose", 3, 1, kAnyRank, choose_routine},
    {"compress", 2, 1, 1, compress_routine},
    {"non_max_suppression", 5, 1, 1, non_max_suppression_routine},
    {"non_zero", 1, 1, 0, non_zero_routine},
    {"read_sizes", 1, 1, 0, read_sizes_routine},
    {"unique", 1, 4, 2, unique_routine},
};

const Row* find_row(std::string_view name) {
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.name == name; });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

bool is_routine(std::string_view name) { return find_row(name) != nullptr; }

RoutineResult run_routine(const RoutineCall& call, RoutineOperands operands) {
  const Row* row = find_row(call.name);
  if (!row) throw fail(E::bad_file, "'{}' is none of this release's routines", call.name);
  if (operands.empty() || !operands[0] || operands.size() > row->operands || call.settings.size() > row->most_settings)
    throw fail(E::bad_file, "routine {} with {} operands, {} settings", call.name, operands.size(),
               call.settings.size());
  RoutineResult found = row->run(call.settings, operands);
  if (found.sizes.size() != call.defines.size())
    throw fail(E::bad_file, "routine {} gives {} sizes, {} are expected", call.name, found.sizes.size(),
               call.defines.size());
  return found;
}

AxisSizes::AxisSizes(const std::vector<int64_t>& sizes, int64_t axis) {
  if (axis < 0 || axis >= static_cast<int64_t>(sizes.size()))
    throw fail(E::shape_mismatch, "axis {} of {} dimensions", axis, sizes.size());
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d)
    (d < axis ? outer : d == axis ? along : inner) *= sizes[static_cast<size_t>(d)];
}

Tensor picked(const Tensor& x, std::span<const int64_t> axis, const std::vector<int64_t>& places) {
  const auto count = static_cast<int64_t>(places.size());
  std::vector<int64_t> sizes = axis.empty() ? std::vector<int64_t>{count} : x.sizes();
  const AxisSizes in(axis.empty() ? std::vector<int64_t>{x.elements()} : x.sizes(), axis.empty() ? 0 : axis[0]);
  if (!axis.empty()) sizes[static_cast<size_t>(axis[0])] = count;
  Tensor y(x.dtype(), sizes);
  const size_t bytes = static_cast<size_t>(in.inner) * byte_size(x.dtype());
  const char* from = static_cast<const char*>(x.data());
  char* to = static_cast<char*>(y.mutable_data());
  if (bytes == 0 || count == 0) return y;
  for (int64_t o = 0; o < in.outer; ++o)
    for (const int64_t place : places) {
      std::memcpy(to, from + static_cast<size_t>(o * in.along + place) * bytes, bytes);
      to += bytes;
    }
  return y;
}

/// What data say the sizes are: shapes are inferred with them.
RoutineResult read_sizes_routine(Settings, RoutineOperands operands) {
  const Tensor& x = *operands[0];
  if (!is_integer(x.dtype())) throw fail(E::dtype_mismatch, "sizes are {}", name_of(x.dtype()));
  RoutineResult found{{x}, {}};
  for (int64_t i = 0; i < x.elements(); ++i) found.sizes.push_back(x.integer(i));
  return found;
}

}  // namespace opfuse
