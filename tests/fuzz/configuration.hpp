// One way to compile and run a model: target x form x exactness, and how parts are run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/drawer.hpp"

namespace opfuse::fuzz {

enum class Form { fused, no_chains, named, unfused };
inline constexpr const char* kForms[] = {"fused", "no-chains", "named", "unfused"};
inline constexpr const char* kTargets[] = {"cpu:avx512", "cpu:avx2", "cpu:baseline"};
inline constexpr const char* kTargetOfCodes = "cpu:avx512-vnni";  ///< instead of the first, for attention of codes

struct Configuration {
  std::string target = "cpu:avx512";
  Form form = Form::fused;  ///< named: the catalogue's patterns without the rules
  bool exact = false;       ///< no Winograd, no tables
  int threads = 1;          ///< 0: parts in falling order, as no pool would hand them out

  std::string name() const;   ///< "cpu:avx2 no-chains exact"; threads are counted apart
  std::string flags() const;  ///< for `opfuse run`; empty where the command line has no such form
};

/// All names, for counting.
std::vector<std::string> all_configurations();

/// Of a seed; every one comes equally often, but a target that this machine lacks is replaced by the next lesser one.
/// Exact graphs are compiled exactly.
Configuration configuration_of(uint64_t seed, const DrawOptions& options);

/// "cpu:avx2 no-chains exact threads=2"; throws bad_option.
Configuration parse_configuration(const std::string& text);

}  // namespace opfuse::fuzz
