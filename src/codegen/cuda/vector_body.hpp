// Several neighbouring elements by one thread: operands that lie together are loaded as 16 (8, 4) bytes, the elements
// are computed one by one, results are stored together. Shared by maps and by epilogues of matrix products.
#pragma once

#include <functional>

#include "codegen/cuda/stage.hpp"

namespace opfuse::cuda {

/// `point` stands at the first element; `axis` runs over the neighbours. `results(j)` names the reductions' results of
/// element j, for the text of an index j.
void emit_vector(StageText& s, const StageText::Point& point, int axis, int64_t vector,
                 const std::function<std::vector<std::string>(const std::string&)>& results);

/// Steps in memory: elements between neighbours along `axis`; nullopt when that is no constant.
std::optional<int64_t> step_along(const IndexMap& map, const ParamLayout& layout, int axis);
/// Neighbours along `axis` lie together, and each vector of them starts at a multiple of `vector`.
bool lies_together(const IndexMap& map, const ParamLayout& layout, int axes, int axis, int64_t vector);

}  // namespace opfuse::cuda
