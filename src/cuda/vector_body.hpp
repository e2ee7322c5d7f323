// Several neighbouring elements by one thread: operands that lie together are loaded as 16 (8, 4) bytes, the elements
// are computed one by one, results are stored together. Shared by maps, rows and
// epilogues of matrix products.
#pragma once

#include <functional>
#include <optional>

#include "cuda/stage.hpp"

namespace opfuse::cuda {

/// Declares what `reads` take at the `vector` neighbours along `axis`, `point` being the first of them; the texts of
/// those reads for element j; `count` is the kernel's name of their number. Reads that do not lie together are left
/// out: they are loaded where they are used.
std::map<int, std::string> load_vectors(StageText& s, const StageText::Point& point, int axis, int64_t vector,
                                        const std::set<int>& reads, const std::string& count = "kVector");

/// All outputs at the neighbours along `axis`. `complete` gives a point what is known of element j: results of
/// reductions, and the texts of the reads `known`.
using CompletePoint = std::function<void(StageText::Point& element, const std::string& j)>;
/// The statement that stores the array of that name; by itself to the output's place in memory.
using StoreVector = std::function<std::string(const std::string& array)>;
void emit_vector(StageText& s, const StageText::Point& point, int axis, int64_t vector, const std::set<int>& known,
                 const CompletePoint& complete, const std::string& count = "kVector", const StoreVector& store = {});

/// "*reinterpret_cast<uint4*>(TO) = *reinterpret_cast<const uint4*>(FROM);"
std::string copy_text(DType dtype, int64_t vector, const std::string& to, const std::string& from);

/// Stores `vector` elements of `from` at `to` in global memory.
std::string store_text(Kernel& k, DType dtype, int64_t vector, const std::string& to, const std::string& from);

/// Steps in memory: elements between neighbours along `axis`; nullopt when that is not a constant.
std::optional<int64_t> step_along(const IndexMap& map, const ParamLayout& layout, int axis);
/// Whether `d` is a multiple of `factor` whatever its symbols are.
bool multiple_of(const Dim& d, int64_t factor);
/// Neighbours along `axis` lie together, and each vector of them starts at a multiple of `vector`.
bool lies_together(const IndexMap& map, const ParamLayout& layout, int axes, int axis, int64_t vector);

}  // namespace opfuse::cuda
