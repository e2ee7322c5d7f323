// Launches are connected when they share a source node, or have nodes that are linked; a connected set is a row. One
// without unfused launches (a copy that only the fused program needs) has no ratio.
#include "split_forms.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "console.hpp"
#include "fusion/plan.hpp"
#include "profile/ratio_of_pairs.hpp"
#include "runtime/artifact.hpp"
#include "tensor/layout.hpp"

namespace opfuse::cli {
namespace {

struct Member {
  std::vector<size_t> fused, unfused;  ///< launch indices
};

/// Sets of launches that are connected by source nodes, in order of their first fused launch.
std::vector<Member> connected(const std::vector<LaunchInfo>& fused, const std::vector<LaunchInfo>& unfused,
                              const NodeLinks& links) {
  const size_t launches = fused.size() + unfused.size();
  std::vector<size_t> parent(launches);
  for (size_t i = 0; i < parent.size(); ++i) parent[i] = i;
  const auto root = [&](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  const auto unite = [&](size_t a, size_t b) { parent[std::max(root(a), root(b))] = std::min(root(a), root(b)); };
  std::map<std::string, size_t> place_of;  // of nodes, behind the launches
  const auto node = [&](const std::string& name) {
    const auto [at, fresh] = place_of.emplace(name, parent.size());
    if (fresh) parent.push_back(at->second);
    return at->second;
  };
  const auto source_of = [&](size_t i) -> const std::vector<std::string>& {
    return i < fused.size() ? fused[i].sources : unfused[i - fused.size()].sources;
  };
  for (size_t i = 0; i < launches; ++i)
    for (const std::string& source : source_of(i)) unite(i, node(source));
  for (const auto& [a, b] : links) unite(node(a), node(b));
  std::map<size_t, Member> sets;  // keyed by the smallest index: fused launches come first
  for (size_t i = 0; i < launches; ++i)
    (i < fused.size() ? sets[root(i)].fused : sets[root(i)].unfused).push_back(i < fused.size() ? i : i - fused.size());
  std::vector<Member> members;
  for (auto& [key, member] : sets) members.push_back(std::move(member));
  return members;
}

double sum_of(const std::vector<int64_t>& nanoseconds, const std::vector<size_t>& launches) {
  double sum = 0;
  for (size_t launch : launches) sum += static_cast<double>(nanoseconds[launch]) * 1e-6;
  return sum;
}

std::vector<SplitForm> forms_of(const std::vector<Member>& members, const std::vector<LaunchInfo>& fused,
                                const std::vector<LaunchInfo>& unfused) {
  std::vector<SplitForm> forms;
  for (const Member& member : members) {
    SplitForm form;
    std::set<std::string> seen;
    std::multiset<std::string> symbols, split_symbols;
    const auto add = [&](const LaunchInfo& launch, std::vector<std::string>& names, double& bytes,
                         std::multiset<std::string>& kernels) {
      bytes += launch.bytes_read + launch.bytes_written;
      names.push_back(launch.name);
      kernels.insert(launch.kernel);
      for (const std::string& node : launch.sources)
        if (seen.insert(node).second) form.nodes.push_back(node);
    };
    for (size_t i : member.fused) add(fused[i], form.kernels, form.bytes, symbols);
    for (size_t i : member.unfused) add(unfused[i], form.split, form.split_bytes, split_symbols);
    form.same_kernels = symbols == split_symbols;
    if (!member.fused.empty()) form.pattern = fused[member.fused.front()].pattern;
    forms.push_back(std::move(form));
  }
  return forms;
}

/// Milliseconds of a member's launches: of the runs of each turn.
using Turns = std::vector<std::vector<double>>;

std::vector<double> joined(const Turns& turns) {
  std::vector<double> all;
  for (const std::vector<double>& turn : turns) all.insert(all.end(), turn.begin(), turn.end());
  return all;
}

std::vector<double> medians(const Turns& turns) {
  std::vector<double> list;
  for (const std::vector<double>& turn : turns) list.push_back(percentile(turn, 50));
  return list;
}

/// What a busy machine or a clock does lasts for many runs: of a turn and the next, not of one sample and the other.
Interval ratio_of(const Turns& fused, const Turns& split, uint64_t seed) {
  constexpr size_t kLeastPairs = 8;
  constexpr int kResamples = 300;
  if (std::min(fused.size(), split.size()) < kLeastPairs)
    return ratio_of_medians(joined(fused), joined(split), seed, kResamples);
  return ratio_of_pairs(medians(fused), medians(split), seed, kResamples);
}

/// Nothing where one of the launches was not run again.
std::optional<double> sum_of_replayed(const std::vector<int64_t>& nanoseconds, const std::vector<size_t>& launches) {
  if (launches.empty()) return std::nullopt;
  for (size_t launch : launches)
    if (nanoseconds[launch] < 0) return std::nullopt;
  return sum_of(nanoseconds, launches);
}

/// Bytes that launches of one node alone write, by node.
std::map<std::string, double> written_alone(const ArtifactProgram& program, const SymbolValues& sizes) {
  std::map<std::string, double> bytes;
  for (const ArtifactLaunch& launch : program.launches)
    if (launch.sources.size() == 1)
      bytes[launch.sources[0]] += static_cast<double>(launch.bytes_written.evaluate(sizes));
  return bytes;
}

bool is_above(const GroupBar& bar, const Interval& ratio) {
  return bar.lower ? ratio.low > bar.above : ratio.low > 1 && ratio.estimate > bar.above;
}

}  // namespace

void measure_alone(std::vector<SplitForm>& forms, const Replayed& fused, const Replayed& unfused,
                   const NodeLinks& links, const MeasureSettings& settings, uint64_t seed) {
  const Replayed* sides[] = {&fused, &unfused};
  const std::vector<Member> members =
      connected(fused.session.context().launches(), unfused.session.context().launches(), links);
  std::vector<Turns> samples[] = {std::vector<Turns>(members.size()), std::vector<Turns>(members.size())};
  size_t running = 2;
  measure({&fused.session.context(), &unfused.session.context()}, settings, [&](size_t side) {
    const std::vector<int64_t>& times = sides[side]->replay.nanoseconds();
    for (size_t m = 0; m < members.size(); ++m) {
      if (side != running) samples[side][m].emplace_back();
      const auto sum = sum_of_replayed(times, side == 0 ? members[m].fused : members[m].unfused);
      if (sum) samples[side][m].back().push_back(*sum);
    }
    running = side;
  });
  for (size_t m = 0; m < members.size() && m < forms.size(); ++m) {
    const auto none = [&](size_t side) { return samples[side][m].empty() || samples[side][m].front().empty(); };
    if (!none(0) && !none(1)) forms[m].alone = ratio_of(samples[0][m], samples[1][m], seed);
  }
}

NodeLinks links_between(const Executable& fused, const Executable& unfused, const SymbolValues& sizes) {
  const ArtifactProgram &program = fused.artifact().program_for(sizes), &other = unfused.artifact().program_for(sizes);
  std::set<std::string> launched;
  for (const ArtifactLaunch& launch : program.launches) launched.insert(launch.sources.begin(), launch.sources.end());
  const std::map<std::string, std::string> layouts(program.layouts.begin(), program.layouts.end()),
      other_layouts(other.layouts.begin(), other.layouts.end());
  const auto lies_otherwise = [&](const std::string& value) {
    const auto one = layouts.find(value), two = other_layouts.find(value);
    if (one == layouts.end()) return false;
    // only the fused program has it: a pass moved its node across a reshape, and the other program converts elsewhere
    return two == other_layouts.end() ? !Layout::parse(one->second).is_dense() : one->second != two->second;
  };
  const auto alone = written_alone(program, sizes), other_alone = written_alone(other, sizes);
  // of a concatenation: what the launches of its parts do not store into it in one of the programs
  const auto writes_otherwise = [&](const std::string& node) {
    const auto one = alone.find(node), two = other_alone.find(node);
    return one != alone.end() && two != other_alone.end() && one->second != two->second;
  };
  NodeLinks links;
  if (fused.artifact().plan_json.empty()) return links;
  const FusionPlan plan = plan_from_json(fused.artifact().plan_json);
  std::set<std::string> made;  // what some node makes, by reader
  for (const EdgeVerdict& edge : plan.edges) {
    const bool in_no_launch = !launched.contains(edge.consumer);
    const bool from_input = !launched.contains(edge.producer) && !made.contains(edge.producer);
    made.insert(edge.consumer);
    if (in_no_launch || from_input || lies_otherwise(edge.tensor) || writes_otherwise(edge.consumer))
      links.emplace_back(edge.producer, edge.consumer);
  }
  return links;
}

std::vector<SplitForm> pair_launches(const std::vector<LaunchInfo>& fused, const std::vector<LaunchInfo>& unfused,
                                     const NodeLinks& links) {
  return forms_of(connected(fused, unfused, links), fused, unfused);
}

std::vector<SplitForm> measure_split_forms(Session& fused, Session& unfused, const NodeLinks& links,
                                           const MeasureSettings& settings, uint64_t seed) {
  const std::vector<LaunchInfo> sides[] = {fused.context().launches(), unfused.context().launches()};
  const std::vector<Member> members = connected(sides[0], sides[1], links);
  Context* contexts[] = {&fused.context(), &unfused.context()};
  std::vector<Turns> samples[] = {std::vector<Turns>(members.size()), std::vector<Turns>(members.size())};
  size_t running = 2;
  measure({contexts[0], contexts[1]}, settings, [&](size_t side) {
    const std::vector<int64_t>& times = contexts[side]->launch_nanoseconds();
    for (size_t m = 0; m < members.size(); ++m) {
      if (side != running) samples[side][m].emplace_back();
      samples[side][m].back().push_back(sum_of(times, side == 0 ? members[m].fused : members[m].unfused));
    }
    running = side;
  });
  for (const std::vector<Turns>& side : samples)  // interrupted before each had a turn
    if (std::any_of(side.begin(), side.end(), [](const Turns& turns) { return turns.empty(); })) return {};
  std::vector<SplitForm> forms = forms_of(members, sides[0], sides[1]);
  for (size_t m = 0; m < members.size(); ++m) {
    forms[m].ms = percentile(joined(samples[0][m]), 50);
    forms[m].split_ms = percentile(joined(samples[1][m]), 50);
    if (forms[m].split_ms > 0) forms[m].ratio = ratio_of(samples[0][m], samples[1][m], seed);
  }
  return forms;
}

Json json_of(const SplitForm& form) {
  return {{"kernels", form.kernels},
          {"pattern", form.pattern},
          {"nodes", form.nodes},
          {"ms", form.ms},
          {"split", form.split},
          {"split_ms", form.split_ms},
          {"bytes", form.bytes},
          {"bytes_saved", form.saved()},
          {"ratio", form.split_ms > 0 ? json_of(form.ratio) : Json(nullptr)},
          {"alone", form.alone ? json_of(*form.alone) : Json(nullptr)},
          {"same_kernels", form.same_kernels},
          {"slower", form.slower()}};
}

std::vector<GroupBar> bars_of(const std::vector<SplitForm>& forms, bool measured) {
  constexpr double kFew = 1.03, kNone = 1.15, kMeasured = 1.01, kMostShare = 0.05;
  std::vector<GroupBar> bars;
  if (measured)
    bars = {{.above = kMeasured, .lower = true}};
  else
    bars = {{.above = kFew}, {.above = kNone}};
  for (const SplitForm& form : forms) {
    if (form.kernels.empty() || form.split_ms <= 0 || form.same_kernels) continue;
    for (GroupBar& bar : bars) {
      ++bar.of;
      const bool in_place = is_above(bar, form.ratio), alone = !form.alone || is_above(bar, *form.alone);
      bar.groups += in_place && alone;
      bar.in_place += in_place && !alone;
    }
  }
  if (!measured) bars[0].most = static_cast<size_t>(kMostShare * static_cast<double>(bars[0].of));
  return bars;
}

std::string text_of(const std::vector<GroupBar>& bars) {
  std::string text;
  for (const GroupBar& bar : bars)
    text += fmt::format("  {} of {} groups {} {} of their split form, at most {}: {}; {} more only where they stand\n",
                        bar.groups, bar.of, bar.lower ? "surely above" : "above", bar.above, bar.most,
                        bar.kept() ? "kept" : "MISSED", bar.in_place);
  return text;
}

Json json_of(const GroupBar& bar) {
  return {{"above", bar.above},   {"of", bar.lower ? "low" : "estimate"},
          {"groups", bar.groups}, {"in_place", bar.in_place},
          {"most", bar.most},     {"compared", bar.of},
          {"kept", bar.kept()}};
}

std::string text_of(const std::vector<SplitForm>& forms, bool all) {
  Table table({">ms", ">split, ms", ">ratio", ">95 % interval", ">alone", ">bytes saved", "", "kernel", ">replaces"});
  size_t slower = 0;
  for (const SplitForm& form : forms) {
    slower += form.slower();
    if (!all && !form.slower()) continue;
    const bool paired = form.split_ms > 0;
    table.row({milliseconds(form.ms), milliseconds(form.split_ms),
               paired ? fmt::format("{:.3f}", form.ratio.estimate) : "-",
               paired ? fmt::format("[{:.3f}, {:.3f}]", form.ratio.low, form.ratio.high) : "-",
               form.alone ? fmt::format("{:.3f}", form.alone->estimate) : "-",
               form.split.empty() ? "-"
               : form.saved() < 0 ? "-" + human_bytes(-form.saved())
                                  : human_bytes(form.saved()),
               form.slower()       ? "SLOWER"
               : form.same_kernels ? "same code"
                                   : "",
               listed(form.kernels, 2), std::to_string(form.split.size())});
  }
  return fmt::format("  {} groups, {} slower than the kernels they replace\n", forms.size(), slower) +
         (all || slower > 0 ? table.text() : "");
}

}  // namespace opfuse::cli
