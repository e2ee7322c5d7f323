// Attention as one kernel: lengths around a tile's, heads around a fragment's, masks, rows without keys, operands as
// projections leave them, queries that share keys, open lengths.
#include <cmath>
#include <limits>

#include "codegen/attention_regions.hpp"
#include "cuda/emulated.hpp"

namespace opfuse::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kMasked = -60000;

const std::vector<SymbolValues> kLengths = {{{"b", 1}, {"m", 1}, {"n", 1}},
                                            {{"b", 2}, {"m", 7}, {"n", 65}},
                                            {{"b", 1}, {"m", 70}, {"n", 130}},
                                            {{"b", 2}, {"m", 3}, {"n", 0}}};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  text.replace(text.find(what), what.size(), by);
  return text;
}

/// Heads cut from one projection [tokens, 3, heads, depth]; the result is [tokens, heads * depth].
std::string merged(int tokens, int heads, int depth) {
  Sizes s = sized(tokens, tokens, depth, depth, std::to_string(heads));
  std::string text = attention_region(s);
  const std::string own = fmt::format("param input f32[{},{},{}]\n", heads, tokens, depth);
  text = replaced(
      text, own + own + own + fmt::format("param output f32[{},{},{}]", heads, tokens, depth),
      fmt::format("param input f32[{0},3,{1},{2}]\nparam output f32[{0},{3}]", tokens, heads, depth, heads * depth));
  text = replaced(text, "read param 0 at [a0, a1, a3]", "read param 0 at [a1, 0, a0, a3]");
  text = replaced(text, "read param 1 at [a0, a2, a3]", "read param 0 at [a2, 1, a0, a3]");
  text = replaced(text, "read param 2 at [a0, a3, a2]", "read param 0 at [a3, 2, a0, a2]");
  return replaced(text, fmt::format("output param 3 f32[{},{},{}] at [a0, a1, a2]", heads, tokens, depth),
                  fmt::format("output param 1 f32[{},{}] at [a1, {}*a0 + a2]", tokens, heads * depth, depth));
}

/// Two heads of queries for each of keys and values.
std::string grouped(int tokens, int heads, int depth) {
  std::string text = attention_region(sized(tokens, tokens, depth, depth, std::to_string(heads)));
  const std::string own = fmt::format("param input f32[{},{},{}]\n", heads, tokens, depth);
  const std::string shared = fmt::format("param input f32[{},{},{}]\n", heads / 2, tokens, depth);
  text = replaced(text, own + own + own, own + shared + shared);
  text = replaced(text, "read param 1 at [a0,", "read param 1 at [a0/2,");
  return replaced(text, "read param 2 at [a0,", "read param 2 at [a0/2,");
}

class List {
 public:
  void add(const std::string& name, const std::string& region, std::vector<SymbolValues> bindings = {{}}) {
    for (const char* type : {"f32", "f16"}) add_as(type, name, region, bindings);
  }
  void add_as(const std::string& type, const std::string& name, const std::string& region,
              const std::vector<SymbolValues>& bindings = {{}}) {
    CudaCase c{.name = fmt::format("attention_{}_{}", name, type), .region = region, .bindings = bindings};
    if (type != "f32") c.region = retyped(region, type);
    if (type != "f32") c.tolerance = type == "f16" ? 2e-3 : 1e-2;
    all.push_back(c);
  }
  /// With a mask for operand 4; kMasked becomes the lowest number of f32 there, beside which no score is seen.
  void add_masked(const std::string& name, const Sizes& sizes, const Tensor& mask) {
    add(name, attention_region(sizes));
    for (size_t i = all.size() - 2; i < all.size(); ++i) {
      const bool half = i + 1 == all.size() && mask.dtype() == DType::f32;
      Tensor operand(half ? DType::f16 : mask.dtype(), mask.sizes());
      for (int64_t e = 0; e < mask.elements(); ++e)
        operand.set_real(e, mask.real(e) == kMasked && !half ? -3.4028234e38 : mask.real(e));
      all[i].given[4] = operand;
    }
  }
  std::vector<CudaCase> all;
};

void add_masks(List& list) {
  const Sizes added = masked(sized(10, 70, 16), "f32[10,70]", "a1, a2", "add(s0, r2)");
  list.add("bias", attention_region(masked(sized(21, 33, 16), "f32[2,21,33]", "a0, a1, a2", "add(mul(s0, 0.5), r2)")));
  list.add("bias_per_key", attention_region(masked(sized(21, 133, 16), "f32[133]", "a2", "add(s0, r2)")));
  list.add("causal", attention_region(masked(sized(29, 29, 16), "", "", "select(le(i2, i1), s0, -60000)")));
  list.add("where",
           attention_region(masked(sized(21, 33, 16), "bool[21,33]", "a1, a2", "select(r2:bool, s0, -60000)")));
  list.add_masked("without_keys_lowest", added, holes(10, 70, kMasked, 0));
  list.add_masked("without_keys_undefined", added, holes(10, 70, -kInfinity, 0));
  list.add_masked("without_keys_guarded", guarded(added), holes(10, 70, -kInfinity, 0));
  list.add_masked("without_keys_zero", zero_without_keys(added), holes(10, 70, -kInfinity, 0));
  Tensor first(DType::f32, {10, 70});  // the first tile of keys masked as a whole, then some
  for (int64_t i = 0; i < first.elements(); ++i) first.set_real(i, i % 70 < 66 ? -kInfinity : 0);
  list.add_masked("first_tile_masked", zero_without_keys(added), first);
  Tensor undefined = holes(10, 70, -kInfinity, 0);
  undefined.set_real(3 * 70 + 5, std::nan(""));
  list.add_masked("nan_beside_rows_without_keys", zero_without_keys(added), undefined);
  list.add_masked("nan_guarded", guarded(added), undefined);
}

std::vector<CudaCase> make_cases() {
  List list;
  list.add("tile", attention_region(sized(64, 64, 64, 64, "1")));
  list.add("vit", attention_region(sized(67, 197, 64, 64, "1")));
  list.add("one_query", attention_region(sized(1, 131, 64)));
  list.add("one_key", attention_region(sized(50, 1, 16)));
  list.add("cross", attention_region(sized(13, 31, 20, 36)));
  list.add("deep", attention_region(sized(17, 65, 128, 128, "1")));
  list.add("deeper", attention_region(sized(3, 17, 200, 8, "1")));
  list.add("narrow", attention_region(sized(9, 9, 1, 3)));
  list.add("depth_80", attention_region(sized(19, 70, 80, 72, "1")));
  list.add_as("f32", "depth_300", attention_region(sized(5, 19, 300, 8, "1")));
  list.add_as("f32", "depth_500", attention_region(sized(5, 19, 500, 8, "1")));
  list.add("keys_transposed", attention_region(with_keys_transposed(sized(20, 45, 17))));
  list.add_as("f16", "keys_transposed_even", attention_region(with_keys_transposed(sized(20, 45, 16))));
  list.add("prologues", attention_region(with_prologues(sized(19, 23, 20, 12))));
  list.add_as("f16", "prologues_even", attention_region(with_prologues(sized(19, 23, 24, 16))));
  list.add_as("f16", "odd_columns", attention_region(sized(19, 23, 16, 5)));
  list.add_as("f16", "three_steps",
              attention_region(masked(sized(17, 135, 16, 40, "1"), "f32[17,135]", "a1, a2", "add(s0, r2)")));
  list.add("merged", merged(37, 3, 16));
  list.add("merged_odd", merged(11, 3, 5));
  list.add("grouped", grouped(21, 4, 24));
  Sizes open;
  open.batch = "b", open.rows = "m", open.keys = "n", open.depth = open.columns = 16;
  list.add("open", attention_region(open), kLengths);
  list.add("open_masked", attention_region(masked(open, "f32[m,n]", "a1, a2", "add(s0, r2)")), kLengths);
  list.add_as("bf16", "tile", attention_region(sized(64, 64, 64, 64, "1")));
  list.add_as("bf16", "cross", attention_region(sized(13, 31, 20, 36)));
  add_masks(list);
  CudaCase many{
      .name = "attention_eight_warps",
      .region = retyped(attention_region(sized(150, 70, 64, 64, "1")), "f16"),
      .schedule = {"attention_mma", {{"warps", 8}, {"copy_q", 1}, {"copy_k", 1}, {"copy_v", 1}, {"vector", 8}}},
      .tolerance = 2e-3};
  list.all.push_back(many);
  CudaCase wide{.name = "attention_wide_scores", .region = attention_region(sized(12, 70, 16))};
  wide.low = -12, wide.high = 12;
  list.all.push_back(wide);
  return list.all;
}

}  // namespace

const std::vector<CudaCase>& attention_cases() {
  static const std::vector<CudaCase> all = make_cases();
  return all;
}

}  // namespace opfuse::test
