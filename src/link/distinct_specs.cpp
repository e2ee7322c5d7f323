// Launches whose kernels are emitted from equal specs share one. On CPUs so do launches that differ by one size alone
// (link/open_size.hpp), and many maps that differ by numbers alone (link/open_literals.hpp).
#include "link/distinct_specs.hpp"

#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "link/generators.hpp"
#include "link/open_literals.hpp"
#include "link/open_size.hpp"

namespace opfuse {
namespace {

/// Kernels that differ by numbers alone before they read them: fewer have their numbers as immediate operands.
constexpr size_t kManyAlike = 16;

/// What a launch asks for: exactly, and with a size or its literals open.
struct Asked {
  KernelSpec spec;
  std::string text;      ///< as it is emitted: launches that agree in this share a kernel
  bool in_body = false;  ///< with a pointer per parameter that follows the body: nothing may lie behind them
  LaunchConstant given{};
  std::optional<OpenSize> open{};
  std::string open_text{};
};

using AskedOfPrograms = std::vector<std::vector<std::optional<Asked>>>;

template <class T>
std::vector<uint8_t> bytes_of(const T* values, size_t count) {
  std::vector<uint8_t> bytes(count * sizeof(T));
  std::memcpy(bytes.data(), values, bytes.size());
  return bytes;
}

std::string emitted_text(const KernelSpec& spec, const TargetInfo& target) {
  return generator_for(target).as_emitted(spec).text();
}

std::optional<Asked> asked_by(const Program& program, const Launch& launch, const TargetInfo& target) {
  if (launch.reference) return std::nullopt;
  Asked asked{kernel_spec(program, launch), {}, !launch.steps.empty()};
  if (target.traits.on_host) settle_unit_strides(asked.spec);
  asked.text = emitted_text(asked.spec, target);
  if (target.traits.on_host && !asked.in_body) asked.open = open_size(asked.spec);
  if (asked.open) asked.open_text = emitted_text(asked.open->spec, target);
  return asked;
}

/// A size is open where several launches differ by it; alone, a kernel has its constants.
void open_sizes(AskedOfPrograms& all) {
  std::map<std::string, std::set<std::string>> sharing;  // open -> exact
  for (const auto& list : all)
    for (const auto& asked : list)
      if (asked && asked->open) sharing[asked->open_text].insert(asked->text);
  for (auto& list : all)
    for (auto& asked : list) {
      if (!asked || !asked->open || sharing[asked->open_text].size() < 2) continue;
      asked->spec = std::move(asked->open->spec);
      asked->text = asked->open_text;
      asked->given = {bytes_of(&asked->open->size, 1), asked->open->size};
    }
}

struct Alike {
  std::vector<std::pair<Asked*, Literals>> members;
  std::set<std::string> texts;
};

/// Opens what differs: numbers that all have stay in the code.
void open_differing(Alike& alike, const TargetInfo& target) {
  const std::vector<float> first = alike.members.front().second.values();
  std::vector<bool> open(first.size(), false);
  for (const auto& [asked, literals] : alike.members) {
    const std::vector<float> values = literals.values();
    for (size_t i = 0; i < values.size(); ++i) open[i] = open[i] || values[i] != first[i];
  }
  for (auto& [asked, literals] : alike.members) {
    std::optional<KernelSpec> opened = with_open(asked->spec, literals, open);
    if (!opened) return;  // as with all others of its form
    const std::vector<float> values = literals.values();
    std::vector<float> given;
    for (size_t i = 0; i < values.size(); ++i)
      if (open[i]) given.push_back(values[i]);
    asked->spec = std::move(*opened);
    asked->text = emitted_text(asked->spec, target);
    asked->given = {bytes_of(given.data(), given.size()), 0};
  }
}

void open_literals(AskedOfPrograms& all, const TargetInfo& target) {
  std::map<std::string, std::vector<Asked*>> distinct;
  for (auto& list : all)
    for (auto& asked : list)
      if (asked && !asked->in_body && asked->given.bytes.empty()) distinct[asked->text].push_back(&*asked);
  if (distinct.size() < kManyAlike) return;
  std::map<std::string, Alike> classes;
  for (auto& [text, same] : distinct) {
    const std::optional<Literals> literals = literals_of(same.front()->spec);
    if (!literals) continue;
    const auto opened = with_open(same.front()->spec, *literals, std::vector<bool>(literals->nodes.size(), true));
    if (!opened) continue;
    Alike& alike = classes[opened->text()];
    alike.texts.insert(text);
    for (Asked* asked : same) alike.members.emplace_back(asked, *literals_of(asked->spec));
  }
  for (auto& [text, alike] : classes)
    if (alike.texts.size() >= kManyAlike) open_differing(alike, target);
}

}  // namespace

DistinctSpecs distinct_specs(const std::vector<const Program*>& programs, const TargetInfo& target) {
  DistinctSpecs result;
  AskedOfPrograms all;
  for (const Program* program : programs) {
    auto& list = all.emplace_back();
    for (const Launch& launch : program->launches) list.push_back(asked_by(*program, launch, target));
  }
  if (target.traits.on_host) {  // kernels of CPUs alone take more than their operands
    open_sizes(all);
    open_literals(all, target);
  }
  std::map<std::string, size_t> known;
  for (auto& list : all) {
    std::vector<size_t>& of_launch = result.of_launch.emplace_back();
    std::vector<LaunchConstant>& constant_of = result.constant_of.emplace_back();
    for (std::optional<Asked>& asked : list) {
      constant_of.push_back(asked ? std::move(asked->given) : LaunchConstant{});
      if (!asked) {
        of_launch.push_back(kNoKernel);
        continue;
      }
      const auto [at, fresh] = known.emplace(asked->text, result.specs.size());
      of_launch.push_back(at->second);
      if (fresh) result.specs.push_back(std::move(asked->spec));
    }
  }
  return result;
}

}  // namespace opfuse
