// Two programs of one model, the plan's and one without the groups of the rules, run in turns. Launches of both that
// stem from the same nodes are one member:
//
//     fused     L0(a b c)   L1(d)  L2(e f)
//     split     S0(a) S1(b) S2(c)  S3(d)  S4(e f)        members {L0 | S0 S1 S2}, {L1 | S3}, {L2 | S4}
//
// A member whose launches compute the same regions on both sides leaves nothing to choose. A member is taken apart
// where its fused launches are slower. Its key is the regions and layouts of its fused launches.
#include "driver/measure_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/fail.hpp"
#include "base/hash.hpp"
#include "driver/known_times.hpp"
#include "driver/measure_launches.hpp"
#include "link/generators.hpp"
#include "opfuse/runtime.hpp"
#include "profile/statistics.hpp"
#include "tune/timing_cache.hpp"

namespace opfuse {
namespace {

constexpr double kSlower = 1.01;  ///< the lower end of the ratio's interval

struct Member {
  std::vector<size_t> fused, split;  ///< launches
  std::set<std::string> nodes;       ///< their sources
  TimingKey key;
};

struct Verdict {
  double fused = 0, split = 0;  ///< microseconds
  double low = 0;               ///< of the ratio
};

/// Sets of launches that are connected by source nodes.
std::vector<Member> members_of(const Program& fused, const Program& split) {
  const size_t count = fused.launches.size() + split.launches.size();
  std::vector<size_t> parent(count);
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto root = [&](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  const auto launch = [&](size_t i) -> const Launch& {
    return i < fused.launches.size() ? fused.launches[i] : split.launches[i - fused.launches.size()];
  };
  std::map<std::string, size_t> first;
  for (size_t i = 0; i < count; ++i)
    for (const std::string& node : launch(i).sources) {
      const auto [at, fresh] = first.emplace(node, i);
      if (!fresh) parent[std::max(root(i), root(at->second))] = std::min(root(i), root(at->second));
    }
  std::map<size_t, Member> members;
  for (size_t i = 0; i < count; ++i) {
    Member& m = members[root(i)];
    if (i < fused.launches.size())
      m.fused.push_back(i);
    else
      m.split.push_back(i - fused.launches.size());
    m.nodes.insert(launch(i).sources.begin(), launch(i).sources.end());
  }
  std::vector<Member> list;
  for (auto& [key, member] : members) list.push_back(std::move(member));
  return list;
}

std::vector<std::string> regions_of(const Program& program, const std::vector<size_t>& launches) {
  std::vector<std::string> hashes;
  for (const size_t l : launches) hashes.push_back(program.launches[l].region.hash().hex());
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

TimingKey key_of(const Program& program, const Member& member, const std::string& machine) {
  std::string regions, layouts;
  for (const size_t l : member.fused) {
    const Launch& launch = program.launches[l];
    regions += launch.region.hash().hex();
    for (const int b : launch.buffers)
      layouts += b < 0 ? "- " : program.buffers[static_cast<size_t>(b)].layout.text() + " ";
  }
  return {member.fused.size() == 1 ? regions : hash_text(regions).hex(), hash_text(layouts).hex(), machine};
}

/// Times of launches together, run by run.
std::vector<double> sums(const std::vector<std::vector<double>>& samples, const std::vector<size_t>& launches) {
  std::vector<double> total;
  for (const size_t l : launches) {
    total.resize(samples[l].size());
    for (size_t i = 0; i < samples[l].size(); ++i) total[i] += samples[l][i];
  }
  return total;
}

/// What two timings that were kept say, when their samples are gone: the spreads widen the ratio.
Verdict verdict_of(const Timing& fused, const Timing& split) {
  const double error = 2 * (fused.spread / std::sqrt(std::max<double>(1, static_cast<double>(fused.count))) +
                            split.spread / std::sqrt(std::max<double>(1, static_cast<double>(split.count))));
  return {fused.median, split.median, split.median > 0 ? fused.median / split.median * (1 - error) : 0};
}

class Measuring {
 public:
  Measuring(const Graph& prepared, FusionPlan& plan, const GroupMeasuring& how)
      : prepared_(prepared),
        plan_(plan),
        how_(how),
        generator_(generator_for(how.target).fingerprint()),
        times_(read_times(how.timings, how.target, threads_of(how))) {}

  std::string run() {
    const Program fused = program_of(plan_), split = program_of(without_rules());
    std::vector<Member> members = members_of(fused, split);
    std::erase_if(members, [&](const Member& m) {
      return m.fused.empty() || m.split.empty() || regions_of(fused, m.fused) == regions_of(split, m.split) ||
             !candidate_in(m);
    });
    for (Member& m : members) m.key = key_of(fused, m, times_.machine);
    const size_t known = static_cast<size_t>(std::count_if(
        members.begin(), members.end(), [&](const Member& m) { return verdicts_.contains(m.key) || known_before(m); }));
    if (known < members.size()) measure(fused, split, members);
    int apart = 0;
    for (const Member& m : members) apart += judge(m);
    return fmt::format(
        "{} groups of the rules against their kernels apart: {} measured, {} known from {}; {} taken apart",
        members.size(), members.size() - known, known, times_.file, apart);
  }

 private:
  const Graph& prepared_;
  FusionPlan& plan_;
  GroupMeasuring how_;
  std::string generator_;
  KnownTimes times_;
  std::map<TimingKey, Verdict> verdicts_;

  static int threads_of(const GroupMeasuring& how) {
    const int threads = how.lowering.algorithms.threads;
    return threads > 0 ? threads : default_threads();
  }

  Program program_of(const FusionPlan& plan) const {
    Graph graph = apply(prepared_, plan);
    bind_fused(graph, how_.later);
    shape_for_target(graph, how_.target, how_.shaping);
    LowerOptions with = how_.lowering;
    with.algorithms.measure = false;
    return lower_to_program(graph, how_.target, with);
  }

  FusionPlan without_rules() const {
    FusionPlan plan = plan_;
    for (Candidate& c : plan.candidates)
      if (!c.named) c.apply = false;
    return plan;
  }

  /// A group of the rules that the member has whole.
  Candidate* candidate_in(const Member& member) const {
    for (Candidate& c : plan_.candidates)
      if (c.apply && !c.named &&
          std::all_of(c.nodes.begin(), c.nodes.end(), [&](const std::string& n) { return member.nodes.contains(n); }))
        return &c;
    return nullptr;
  }

  bool known_before(const Member& member) {
    const Timing *fused = times_.cache.find(member.key, "fused", generator_),
                 *split = times_.cache.find(member.key, "split", generator_);
    if (!fused || !split) return false;
    verdicts_[member.key] = verdict_of(*fused, *split);
    return true;
  }

  void measure(const Program& fused, const Program& split, const std::vector<Member>& members) {
    const auto samples = sample_launches({fused, split}, how_.target, threads_of(how_));
    TimingCache fresh;
    for (const Member& m : members) {
      if (verdicts_.contains(m.key)) continue;
      const std::vector<double> one = sums(samples[0], m.fused), several = sums(samples[1], m.split);
      const Timing a = timing_of("fused", one, generator_), b = timing_of("split", several, generator_);
      verdicts_[m.key] = {a.median, b.median, b.median > 0 ? ratio_of_medians(one, several, 1, 300).low : 0};
      fresh.add(m.key, a), fresh.add(m.key, b);
    }
    fresh.write(times_.file);
  }

  bool judge(const Member& member) {
    const Verdict& v = verdicts_.at(member.key);
    if (v.low <= kSlower) return false;
    bool any = false;
    while (Candidate* c = candidate_in(member)) {
      c->apply = false, any = true;
      c->label.clear();
      c->decline = Decline{"measured_slower",
                           fmt::format("measured {:.1f} us as {}, {:.1f} us apart (ratio above {:.2f})", v.fused,
                                       member.fused.size() == 1 ? "one launch" : "launches of groups", v.split, v.low),
                           c->nodes};
    }
    return any;
  }
};

}  // namespace

std::string measure_groups(const Graph& prepared, FusionPlan& plan, const GroupMeasuring& how) {
  const bool any = std::any_of(plan.candidates.begin(), plan.candidates.end(),
                               [](const Candidate& c) { return c.apply && !c.named; });
  if (!any) return "the rules made no group: none was measured";
  return Measuring(prepared, plan, how).run();
}

}  // namespace opfuse
