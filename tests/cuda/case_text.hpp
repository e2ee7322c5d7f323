// What the lists of cases share: texts of regions, types, sizes of open axes.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cuda/emulated.hpp"

namespace opfuse::test {

using Bindings = std::vector<SymbolValues>;
inline const Bindings kSizes = {{{"n", 1}}, {{"n", 2}}, {{"n", 7}}, {{"n", 37}}};

/// The expression with every read, result and number of `dtype`.
std::string typed(const std::string& text, const std::string& dtype);
/// Products of [m, k] and [k, n], b of them.
std::string batched_text(const std::string& b, int m, int n, int k);

CudaCase with(CudaCase c, double low, double high);
CudaCase half(const std::string& name, const std::string& region, Bindings bindings = {{}});
CudaCase bfloat(const std::string& name, const std::string& region);
CudaCase tf32(const std::string& name, const std::string& region, Bindings bindings = {{}});

}  // namespace opfuse::test
