// Do the tests of results see a wrong kernel? Each barrier, wait, copy and index of each skeleton is removed or shifted
// in turn; the emulated run must fail. What survives is listed by name.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
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
                                               "channels",
                                               "sum_long",
                                               "gemm_half_128",
                                               "gemm_half_8",
                                               "masked_short",
                                               "masked_short_four",
                                               "layer_norm_four",
                                               "softmax_open_short",
                                               "depthwise_strided_7",
                                               "attention_three_steps_f16",
                                               "attention_bias_per_key_f32",
                                               "norm_plain_f16",
                                               "norm_odd_f32",
                                               "wgmma_two_groups"};
  std::vector<CudaCase> result;
  std::vector<CudaCase> all = all_cases();
  all.insert(all.end(), hopper_cases().begin(), hopper_cases().end());
  for (const CudaCase& c : all)
    if (wanted.count(c.name)) result.push_back(c);
  return result;
}

std::string replaced(const std::string& text, size_t at, size_t length, const std::string& by) {
  return text.substr(0, at) + by + text.substr(at + length);
}

std::string line_of(const std::string& text, size_t at) {
  const size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
  const size_t first = text.find_first_not_of(' ', begin);
  return text.substr(first, end - first);
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
  each("& 16u", "& 0u", "tap lost");
  each("0u;", "16u;", "tap added");
  each("tap * kDilation", "(tap + 1) * kDilation", "tap shifted");
  each("rows_a[k] +", "rows_a[0] +", "fragment shifted");
  each("rows_b[k] +", "rows_b[0] +", "fragment shifted");
  // coordinates: one further
  static const std::regex coordinate(
      R"(const (?:int|long long) (a\d+|m|n|k|row|chunk|at|column|element|tap_[ab]|along_[ab]|tile_[kmn])(?:_\d+)? = ([^;]+);)");
  for (auto at = std::sregex_iterator(text.begin() + static_cast<std::ptrdiff_t>(body), text.end(), coordinate);
       at != std::sregex_iterator(); ++at)
    add(body + static_cast<size_t>(at->position(2)), static_cast<size_t>(at->length(2)),
        "(" + at->str(2) + ") + " + (at->str(2).find("* kVector") != std::string::npos ? "kVector" : "1"),
        "index shifted");
  // bounds: a step less. Loops over tiles of K may end early within a tile; there nothing changes.
  const bool vectors_of_rows = std::regex_search(text, std::regex(R"(kTeam\)? \* kVector)"));
  const std::string step = text.find("copy_16(") != std::string::npos ? " - 8"
                           : vectors_of_rows                          ? " - kVector"
                                                                      : " - 1";
  static const std::regex bound(R"((?:<|>=) (\d+)(?=[);& ]))");
  for (auto at = std::sregex_iterator(text.begin() + static_cast<std::ptrdiff_t>(body), text.end(), bound);
       at != std::sregex_iterator(); ++at) {
    const size_t place = body + static_cast<size_t>(at->position(1));
    if (line_of(text, place).find("k0 < ") != std::string::npos) continue;
    const bool counts = line_of(text, place).starts_with("for (int ");
    add(place, static_cast<size_t>(at->length(1)), at->str(1) + (counts && !vectors_of_rows ? " - 1" : step),
        "bound lowered");
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

TEST(MutatedKernels, nearly_all_are_caught) {
  const TargetInfo target = emulated_target();
  const std::vector<CudaCase> cases = bases();
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
  for (size_t i = 0; i < cases.size(); ++i) ASSERT_EQ(run_case(cases[i], specs[i], kernels[i], module), "");
  size_t caught = 0, synchronizations = 0, caught_synchronizations = 0;
  std::string survivors;
  for (const Mutant& m : mutants) {
    const bool synchronizes =
        m.what.find("removed") != std::string::npos || m.what.find("wait") == 0 || m.what.find("barrier moved") == 0;
    // races are found by what barriers order, in any run; for indices several orders are tried
    const bool seen = caught_in_child(cases[m.base], specs[m.base], m, module, synchronizes ? 1 : 4);
    caught += seen;
    synchronizations += synchronizes;
    caught_synchronizations += synchronizes && seen;
    if (!seen) survivors += fmt::format("\n  {} {}", cases[m.base].name, m.what);
  }
  fmt::print("{} mutants, {} caught; of {} barriers and waits {}; survivors:{}\n", mutants.size(), caught,
             synchronizations, caught_synchronizations, survivors);
  EXPECT_EQ(cases.size(), 30u) << "a wanted case is gone";
  EXPECT_GE(mutants.size(), 450u);
  EXPECT_GE(synchronizations, 38u);
  EXPECT_EQ(caught_synchronizations, synchronizations) << survivors;
  EXPECT_GE(static_cast<double>(caught), 0.95 * static_cast<double>(mutants.size())) << survivors;
}

}  // namespace
}  // namespace opfuse::test
