// Launches with equal specs share a kernel. On CPUs so do launches that differ by one size alone (link/open_size.hpp).
#include "link/distinct_specs.hpp"

#include <map>
#include <optional>
#include <set>

#include "link/open_size.hpp"

namespace opfuse {
namespace {

/// What a launch asks for: exactly, and with a size open.
struct Asked {
  KernelSpec spec;
  std::string text;
  std::optional<OpenSize> open{};
  std::string open_text{};
};

/// On CPUs, whose kernels read sizes. Launches of bodies have a pointer per parameter that follows the body.
std::optional<Asked> asked_by(const Program& program, const Launch& launch, const TargetInfo& target) {
  if (launch.reference) return std::nullopt;
  Asked asked{kernel_spec(program, launch), {}};
  if (target.traits.on_host) settle_unit_strides(asked.spec);
  asked.text = asked.spec.text();
  if (target.traits.on_host && launch.steps.empty()) asked.open = open_size(asked.spec);
  if (asked.open) asked.open_text = asked.open->spec.text();
  return asked;
}

}  // namespace

/// A size is open where several launches differ by it; alone, a kernel has its constants.
DistinctSpecs distinct_specs(const std::vector<const Program*>& programs, const TargetInfo& target) {
  DistinctSpecs result;
  std::vector<std::vector<std::optional<Asked>>> all;
  std::map<std::string, std::set<std::string>> sharing;  // open -> exact
  for (const Program* program : programs) {
    auto& list = all.emplace_back();
    for (const Launch& launch : program->launches) {
      const auto& asked = list.emplace_back(asked_by(*program, launch, target));
      if (asked && asked->open) sharing[asked->open_text].insert(asked->text);
    }
  }
  std::map<std::string, size_t> known;
  for (auto& list : all) {
    std::vector<size_t>& of_launch = result.of_launch.emplace_back();
    std::vector<int64_t>& size_of = result.size_of.emplace_back();
    for (std::optional<Asked>& asked : list) {
      const bool shares = asked && asked->open && sharing[asked->open_text].size() > 1;
      size_of.push_back(shares ? asked->open->size : 0);
      if (!asked) {
        of_launch.push_back(kNoKernel);
        continue;
      }
      const auto [at, fresh] = known.emplace(shares ? asked->open_text : asked->text, result.specs.size());
      of_launch.push_back(at->second);
      if (fresh) result.specs.push_back(shares ? std::move(asked->open->spec) : std::move(asked->spec));
    }
  }
  return result;
}

}  // namespace opfuse
