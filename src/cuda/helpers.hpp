// Device functions that kernels call beyond CUDA's own: each kernel file carries the text of those it uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opfuse::cuda {

struct Helper {
  std::string name;
  std::string text;
  std::vector<std::string> needs = {};
  bool primitive = false;  ///< PTX: the emulation brings its own
};

/// Those of products of four warps, and of Hopper's copy engine.
std::vector<Helper> group_product_helpers();
std::vector<Helper> copy_engine_helpers();

const Helper& find_helper(std::string_view name);
/// In the order they must stand in a file.
const std::vector<Helper>& all_helpers();

}  // namespace opfuse::cuda
