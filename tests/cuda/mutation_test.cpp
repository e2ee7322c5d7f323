// Do the tests of results see a wrong kernel? Each barrier, wait, copy and index of each skeleton is removed or shifted
// in turn; the emulated run must fail. What survives is listed by name.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <regex>
#include <set>

#include "cuda/emulated.hpp"

namespace opfuse::test {
namespace {

struct Mutant {
  size_t base;  ///< case
  std::string what;
  cuda::KernelText kernel;
};

std::vector<CudaCase> named(const std::set<std::string>& wanted) {
  std::vector<CudaCase> result;
  std::vector<CudaCase> all = all_cases();
  all.insert(all.end(), hopper_cases().begin(), hopper_cases().end());
  for (const CudaCase& c : all)
    if (wanted.count(c.name)) result.push_back(c);
  EXPECT_EQ(result.size(), wanted.size()) << "a wanted case is gone";
  return result;
}

/// One representative of every skeleton and schedule, small enough to be run a thousand times.
std::vector<CudaCase> bases() {
  static const std::set<std::string> wanted = {"add_relu",
                                               "odd",
                                               "padded",
                                               "softmax",
                                               "softmax_short",
                                               "softmax_long",
                                               "sum_columns",
                                               "depthwise_strided",
                                               "max_pool",
                                               "gemm_odd",
                                               "batched_deep",
                                               "conv_odd",
                                               "conv_groups",
                                               "gemm_half_deep",
                                               "conv_half_deep",
                                               "conv_half_deep_odd",
                                               "conv_half_taps",
                                               "conv_half_stem_gathered",
                                               "channels",
                                               "sum_long",
                                               "gemm_half_128",
                                               "gemm_tf32_8",
                                               "masked_short",
                                               "masked_short_four",
                                               "layer_norm_four",
                                               "norm_across_ragged",
                                               "softmax_open_short",
                                               "joined",
                                               "chosen",
                                               "depthwise_strided_7",
                                               "attention_three_steps_f16",
                                               "attention_bias_per_key_f32",
                                               "norm_plain_f16",
                                               "norm_odd_f32",
                                               "wgmma_two_groups"};
  return named(wanted);
}

std::string replaced(const std::string& text, size_t at, size_t length, const std::string& by) {
  return text.substr(0, at) + by + text.substr(at + length);
}

std::string line_of(const std::string& text, size_t at) {
  const size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
  const size_t first = text.find_first_not_of(' ', begin);
  return text.substr(first, end - first);
}

using EachWord = std::function<void(const std::string& word, const std::string& by, const std::string& how)>;

/// Blocks that stay: barriers of phases, boxes, roles.
void add_copy_engine_mutants(const EachWord& each, bool both_mapped) {
  each("phase ^ 1)", "phase)", "wrong phase");
  each("phase);", "phase ^ 1);", "wrong phase");
  each(", phase ^= 1;", ";", "phase kept");
  each("barrier_init_visible();", "", "fence of new barriers removed");
  each("full[s], 1)", "full[s], 2)", "arrivals of a barrier");
  each("kFillers + 1)", "kFillers)", "arrivals of a barrier");
  each("kGroups * 4)", "kGroups * 4 - 1)", "arrivals of a barrier");
  each("kGroups * 4)", "kGroups * 4 + 1)", "arrivals of a barrier");
  each("sizeof shared.a[0] + ", "", "bytes not expected");
  each(" + sizeof shared.b[0]", "", "bytes not expected");
  each("barrier_wait(&shared.empty[stage], phase ^ 1);", "", "wait for an empty stage removed");
  each("barrier_wait(&shared.full[stage], phase);", "", "wait for a full stage removed");
  each("lane == 0) barrier_arrive", "lane == 1) barrier_arrive", "arrival by who has not waited for the products");
  each("if (step > 0 && lane == 0)", "if (lane == 0)", "arrival for no step");
  each("if (step > 0 && lane == 0)", "if (step > 1 && lane == 0)", "arrival lost");
  each("stage == 0 ? kStages - 1 : stage - 1]", "stage]", "arrival at another stage");
  each("product_wait<1>();", "", "wait for products removed");
  each("first * kChunks", "0", "group shifted");
  each("first * kChunks", "(first + 8) * kChunks", "rows shifted");
  if (both_mapped) each("&map_a,", "&map_b,", "map of the other operand");
  if (both_mapped) each("&map_b,", "&map_a,", "map of the other operand");
  each("shared.a[stage], &map", "shared.b[stage], &map", "tile of the other operand");
  each("operand_rows128(&shared.a", "1ull << 62 ^ operand_rows128(&shared.a", "descriptor of another swizzle");
  each("operand_rows128(&shared.b", "32ull << 32 ^ operand_rows128(&shared.b", "descriptor of other strides");
  each("operand_rows128(&shared.b[stage][0])", "operand_rows128(&shared.a[stage][0])", "descriptors exchanged");
  each("], k, m0", "], k + 1, m0", "box shifted");
  each(", k, m0)", ", k + 8, m0)", "box shifted");
  each(", m0);", ", m0 + 1);", "box shifted");
  each(", n0);", ", n0 + 1);", "box shifted");
  each("n0 + box * 64", "n0 + box * 64 + 8", "stored box shifted");
  each("m0 + first);", "m0);", "stored box of the other group");
  each("if (threadIdx.x % 128 == 0) store_wait_read<0>();", "", "wait for stored boxes removed");
  each("store_commit();", "", "commit of stored boxes removed");
  each("group_sync<128>(group);", "", "barrier of a group removed");
  each("group_sync<128>(group);", "group_sync<128>(1);", "barrier of another group");
  each("place<kChunks>(row_of_warp + row,", "place<kChunks>(row,", "place in a box");
  each("% 64 / 8)] =", "% 64 / 8 ^ 1)] =", "swizzle");
  each("row_of_warp / 16", "row_of_warp / 32", "staging of two warps");
  each("tile += (int)gridDim.x", "tile += (int)gridDim.x + 1", "tile left out");
  each("copy_wait<kStages - 2>();", "copy_wait<kStages - 1>();", "wait too short");
  each("full[(stage + 2) % kStages]", "full[(stage + 1) % kStages]", "arrival at another stage");
  each("s = left; s > 0;", "s = left; s > 1;", "arrival lost");
}

/// Attention by boxes: its operands, their boxes and places, the rows' maximum and sum.
void add_attention_mutants(const EachWord& each, const std::string& constants) {
  const auto has = [&](const char* constant) { return constants.find(constant) != std::string::npos; };
  each("&map_q,", "&map_k,", "map of the other operand");
  each("&map_v,", "&map_k,", "map of the other operand");
  each("ready, 1)", "ready, 2)", "arrivals of a barrier");
  each("barrier_wait(&shared.ready, 0);", "", "wait for queries removed");
  each("sizeof shared.keys[0] + ", "", "bytes not expected");
  each(" + sizeof shared.values[0]", "", "bytes not expected");
  each("if (lane == 0) barrier_arrive(&shared.empty[stage]);", "", "arrival removed");
  each("step * kKeys", "(step + 1) * kKeys", "box shifted");
  each("step * kKeys", "step * kKeys + 1", "box shifted");
  each(", 64, m0", ", 0, m0", "panel shifted");
  if (has("kGroups = 2")) each("group * 64 * 8", "0", "group shifted");
  if (!has("kDepth = 32")) each("k % 4 * 2", "k % 2 * 2", "operand shifted");
  each("k * 16 * 8", "k * 8 * 8", "operand shifted");
  if (!has("kColumns = 64")) each("kKeys * 128", "kKeys * 64", "panel shifted");
  each("group_sync<128>(group + 1);", "", "barrier of a group removed");
  each("place<8>(row, chunk)", "place<8>(row, chunk ^ 1)", "swizzle");
  each("weights[k],", "weights[0],", "fragment shifted");
  each("score[k * 8 + i * 2 + 1]", "score[k * 8 + i * 2]", "fragment shifted");
  each("] *= keep", "] *= 1.0f", "sums not scaled");
  each("total[half] *= keep;", "", "total not scaled");
  each("most, 2));", "most, 1));", "maximum of half a row");
  each("row_of_warp + lane / 4 + e / 2 * 8", "row_of_warp + lane / 4", "row shifted");
}

/// How much less of a bound is less: a loop's step, a vector of the columns that are stored together, 16 bytes.
std::string step_of_bound(const cuda::KernelText& kernel, const std::string& line, const std::string& bounded) {
  std::smatch found;
  const bool loop = line.starts_with("for (");
  if (loop && std::regex_search(line, found, std::regex(R"(\+= ([\w* ]+)\))"))) return "(" + found.str(1) + ")";
  if (loop) return "1";
  const bool stored = bounded == "n" || bounded.starts_with("n_") || bounded == "column";
  if (stored && kernel.constants.find("kVector") != std::string::npos) return "kVector";
  if (std::regex_search(kernel.function, std::regex(R"(kTeam\)? \* kVector)"))) return "kVector";
  return kernel.function.find("copy_16(") != std::string::npos ? "8" : "1";
}

/// Every single change of one kernel.
void add_mutants(size_t base, const cuda::KernelText& kernel, std::vector<Mutant>& out) {
  const std::string& text = kernel.function;
  const size_t body = text.find(") {\n");
  const auto add = [&](size_t at, size_t length, const std::string& by, const std::string& how) {
    Mutant m{base, fmt::format("{}: {}", how, line_of(text, at)), kernel};
    m.kernel.symbol = fmt::format("{}_m{}", kernel.symbol, out.size());
    m.kernel.function = replaced(text, at, length, by);
    const size_t name = m.kernel.function.find(kernel.symbol + "(");
    m.kernel.function = replaced(m.kernel.function, name, kernel.symbol.size(), m.kernel.symbol);
    out.push_back(std::move(m));
  };
  const auto each = [&](const std::string& word, const std::string& by, const std::string& how) {
    for (size_t at = text.find(word, body); at != std::string::npos; at = text.find(word, at + 1))
      add(at, word.size(), by, how);
  };
  each("__syncthreads();", "", "barrier removed");
  each("__syncwarp();", "", "warp barrier removed");
  each("copy_wait<kStages - 2>();", "", "wait removed");
  each("copy_wait<kStages - 2>();", "copy_wait<kStages - 1>();", "wait too short");
  each("copy_wait<0>();", "", "wait removed");
  each("product_wait<0>();", "", "wait for products removed");
  each("async_fence();", "", "fence removed");
  each("product_commit();", "", "commit of products removed");
  each("a + k * 2", "a", "operand shifted");
  each("b + k * 2", "b + k", "operand shifted");
  each("group * 64 * kChunks", "0", "group shifted");
  each("stage == 0 ? kStages - 1 : stage - 1", "stage", "stage removed from the ring");
  each("fill(t + kStages - 1,", "fill(t + kStages,", "step shifted");
  each("copy_commit();", "", "commit removed");
  add_copy_engine_mutants(each, text.find("&map_a,") != std::string::npos && text.find("&map_b,") != std::string::npos);
  if (kernel.function.find("&map_v") != std::string::npos) add_attention_mutants(each, kernel.constants);
  // copies into what others may still read: seen only where they land before the barrier behind them
  const size_t wait = text.find("copy_wait<kStages - 2>();");
  const size_t barrier = wait == std::string::npos ? wait : text.find("__syncthreads();", wait);
  const size_t commit = barrier == std::string::npos ? barrier : text.find("copy_commit();\n", barrier);
  const size_t behind = commit == std::string::npos ? commit : commit + 15;
  if (behind != std::string::npos)
    add(barrier, behind - barrier, text.substr(barrier + 16, behind - barrier - 16) + "__syncthreads();\n",
        "barrier moved behind the copies");
  each("i * kRowStep", "(i + 1) * kRowStep", "row shifted");
  each("(stage + kStages - 1) % kStages", "stage", "stage removed from the ring");
  each("fill(t + stage + kStages - 1,", "fill(t + stage + kStages,", "step shifted");
  each("& bit_a)", "& 0u)", "tap lost");
  each("place<kChunks>(row, chunk + g * kColumns)", "place<kChunks>(row, chunk)", "chunk shifted");
  each(" + g * kColumns * ", " + g * ", "chunk shifted");
  each("step / ", "1 + step / ", "tap shifted");
  each("0u;", "~0u;", "tap added");
  each("& 1) != 0", "& 0) != 0", "tap lost");
  each("(row + i * kRowStep, c)", "(row + i * kRowStep, c ^ 1)", "chunk shifted");
  each("tap * kDilation", "(tap + 1) * kDilation", "tap shifted");
  each("rows_a[k] +", "rows_a[0] +", "fragment shifted");
  each("rows_b[k] +", "rows_b[0] +", "fragment shifted");
  // coordinates: one further
  static const std::regex coordinate(
      R"(const (?:int|long long) (a\d+|m|n|k|row|order|chunk|at|column|element|tap_[ab]|along_[ab]|tile_[kmn])(?:_\d+)? = ([^;]+);)");
  for (auto at = std::sregex_iterator(text.begin() + static_cast<std::ptrdiff_t>(body), text.end(), coordinate);
       at != std::sregex_iterator(); ++at)
    add(body + static_cast<size_t>(at->position(2)), static_cast<size_t>(at->length(2)),
        "(" + at->str(2) + ") + " + (at->str(2).find("* kVector") != std::string::npos ? "kVector" : "1"),
        "index shifted");
  // bounds: a step less
  static const std::regex bound(R"((\w*) (?:<|>=) (\d+)(?=[);& ]))");
  for (auto at = std::sregex_iterator(text.begin() + static_cast<std::ptrdiff_t>(body), text.end(), bound);
       at != std::sregex_iterator(); ++at) {
    const size_t place = body + static_cast<size_t>(at->position(2));
    add(place, static_cast<size_t>(at->length(2)),
        at->str(2) + " - " + step_of_bound(kernel, line_of(text, place), at->str(1)), "bound lowered");
  }
}

/// Rows in the shared memory of the launch: less of it, arrays that overlap, rows held that do not fit.
void add_shared_mutants(size_t base, const cuda::KernelText& kernel, std::vector<Mutant>& out) {
  if (kernel.launch_shared_most == 0) return;
  const auto add = [&](const std::string& how) -> cuda::KernelText& {
    out.push_back({base, how, kernel});
    cuda::KernelText& changed = out.back().kernel;
    changed.symbol = fmt::format("{}_m{}", kernel.symbol, out.size());
    changed.function = std::regex_replace(kernel.function, std::regex(kernel.symbol + "\\("), changed.symbol + "(");
    return changed;
  };
  cuda::KernelText& less = add("shared memory of the launch two bytes less");
  less.launch_shared = max(0, less.launch_shared - Dim(2));
  static const std::regex behind(R"((launch_shared\(\) \+ )([^)]+)\))"), bound("<= kHeld");
  for (const auto& [pattern, by] : {std::pair(behind, "$1$2 - 2)"), std::pair(bound, "<= kHeld + 1")}) {
    if (!std::regex_search(kernel.function, pattern)) continue;
    cuda::KernelText& changed = add(fmt::format("changed to {}", by));
    changed.function = std::regex_replace(changed.function, pattern, by);
  }
}

/// In a process of its own: a wrong index may also crash, or loop.
bool caught_in_child(const CudaCase& c, const KernelSpec& spec, const Mutant& mutant,
                     const cuda::EmulatedModule& module, int orders) {
  const pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    alarm(30);
    _exit(run_case(c, spec, mutant.kernel, module, orders).empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

struct Score {
  size_t mutants = 0, caught = 0, synchronizations = 0, caught_synchronizations = 0;
  std::string survivors;
};

Score score_of(const std::vector<CudaCase>& cases) {
  const TargetInfo target = emulated_target();
  const std::vector<KernelSpec> specs = specs_of(cases, target);
  std::vector<Mutant> mutants;
  for (size_t i = 0; i < cases.size(); ++i) {
    add_mutants(i, cuda::write_kernel(specs[i], target), mutants);
    add_shared_mutants(i, cuda::write_kernel(specs[i], target), mutants);
  }
  std::vector<cuda::KernelText> kernels;
  for (const KernelSpec& spec : specs) kernels.push_back(cuda::write_kernel(spec, target));
  for (const Mutant& m : mutants) kernels.push_back(m.kernel);
  const std::vector<uint8_t> image = cuda::compile_for_emulation(kernels);
  const cuda::EmulatedModule module(image);
  Score score;
  score.mutants = mutants.size();
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(run_case(cases[i], specs[i], kernels[i], module), "");
  for (const Mutant& m : mutants) {
    const bool synchronizes =
        m.what.find("removed") != std::string::npos || m.what.find("wait") == 0 || m.what.find("barrier moved") == 0;
    // races are found by what barriers order, in any run; for indices several orders are tried
    const bool seen = caught_in_child(cases[m.base], specs[m.base], m, module, synchronizes ? 1 : 4);
    score.caught += seen;
    score.synchronizations += synchronizes;
    score.caught_synchronizations += synchronizes && seen;
    if (!seen) score.survivors += fmt::format("\n  {} {}", cases[m.base].name, m.what);
  }
  fmt::print("{} mutants, {} caught; of {} barriers and waits {}; survivors:{}\n", score.mutants, score.caught,
             score.synchronizations, score.caught_synchronizations, score.survivors);
  return score;
}

TEST(MutatedKernels, nearly_all_are_caught) {
  const Score score = score_of(bases());
  EXPECT_GE(score.mutants, 450u);
  EXPECT_GE(score.synchronizations, 38u);
  EXPECT_EQ(score.caught_synchronizations, score.synchronizations) << score.survivors;
  EXPECT_GE(static_cast<double>(score.caught), 0.95 * static_cast<double>(score.mutants)) << score.survivors;
}

/// Blocks that stay: products, an image, an operand that threads fill.
TEST(MutatedKernels, of_the_copy_engine_all_but_what_changes_nothing_are_caught) {
  const Score score =
      score_of(named({"tma_ragged", "tma_conv_deep", "tma_tf32_copied", "attention_tma_computed_queries",
                      "attention_tma_bias", "attention_tma_parts_of_panels"}));
  EXPECT_GE(score.mutants, 100u);
  EXPECT_EQ(score.caught_synchronizations, score.synchronizations) << score.survivors;
  size_t bounds = 0;  // that end within a box or a vector of eight
  for (size_t at = score.survivors.find("bound lowered"); at != std::string::npos;
       at = score.survivors.find("bound lowered", at + 1))
    ++bounds;
  EXPECT_EQ(score.caught + bounds, score.mutants) << score.survivors;
}

}  // namespace
}  // namespace opfuse::test
