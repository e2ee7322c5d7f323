// Ledgers as maps from (producer, consumer) to a verdict; where several tensors go from one node to another, the pair
// is fused when one of them needs no memory between two launches.
//
//     first \ second   fused     apart       -
//     fused            alike     lost        only in first
//     apart            gained    alike       only in first
#include "fusion/explain/plan_diff.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.hpp"
#include "fusion/reasons.hpp"

namespace opfuse {
namespace {

using Edges = std::map<std::pair<std::string, std::string>, const EdgeVerdict*>;

bool says_what_runs(const FusionPlan& plan) {
  return std::any_of(plan.edges.begin(), plan.edges.end(), [](const EdgeVerdict& e) { return !e.executed.empty(); });
}

class Ledger {
 public:
  Ledger(const FusionPlan& plan, bool by_groups) : by_groups_(by_groups) {
    for (const EdgeVerdict& e : plan.edges) {
      const EdgeVerdict*& known = edges_[{e.producer, e.consumer}];
      if (!known || (is_fused(e) && !is_fused(*known))) known = &e;
    }
  }

  const Edges& edges() const { return edges_; }
  const EdgeVerdict* find(const Edges::key_type& key) const {
    const auto at = edges_.find(key);
    return at == edges_.end() ? nullptr : at->second;
  }
  bool is_fused(const EdgeVerdict& e) const {
    if (by_groups_ || e.executed.empty()) return !e.group.empty() || e.decline.code == "several_launches";
    return e.executed == kOneLaunch || e.executed == kView;
  }

 private:
  Edges edges_;
  bool by_groups_;
};

FusionChange change_of(const EdgeVerdict& fused, const EdgeVerdict& apart) {
  FusionChange c{.producer = apart.producer,
                 .consumer = apart.consumer,
                 .tensor = apart.tensor,
                 .where = !fused.by.empty() ? fused.by : fused.group,
                 .code = apart.decline.code,
                 .message = apart.decline.message,
                 .change = change_for(apart),
                 .bytes = {},
                 .microseconds = {}};
  if (c.code.empty()) c.code = apart.executed;
  if (!apart.price || !apart.price->joined) return c;
  c.bytes = apart.price->apart.bytes - apart.price->joined->bytes;
  c.microseconds = apart.price->apart.microseconds - apart.price->joined->microseconds;
  return c;
}

void by_time(std::vector<FusionChange>& changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const FusionChange& a, const FusionChange& b) {
    return a.microseconds.value_or(0) > b.microseconds.value_or(0);
  });
}

void compare_modules(const FusionPlan& first, const FusionPlan& second, PlanDiff& diff) {
  for (const auto& [module, count] : first.module_counts()) diff.modules[module].first = count;
  for (const auto& [module, count] : second.module_counts()) diff.modules[module].second = count;
  std::erase_if(diff.modules, [](const auto& entry) { return entry.second.first == entry.second.second; });
}

std::string megabytes(int64_t bytes) { return fmt::format("{:.2f} MB", 1e-6 * static_cast<double>(bytes)); }

std::string price_of(const FusionChange& c) {
  std::string text;
  if (c.bytes) text += "   " + megabytes(*c.bytes);
  if (c.microseconds) text += fmt::format(", predicted {:.1f} us", *c.microseconds);
  return text;
}

std::string text_of(const std::vector<FusionChange>& changes, const char* title, size_t top) {
  std::string text;
  const size_t shown = top == 0 ? changes.size() : std::min(top, changes.size());
  for (size_t i = 0; i < shown; ++i) {
    const FusionChange& c = changes[i];
    text += fmt::format("{:<8} \"{}\" -> \"{}\"   {}{}\n", title, c.producer, c.consumer, c.code, price_of(c));
    if (!c.message.empty()) text += "  " + c.message + "\n";
    if (!c.where.empty()) text += fmt::format("  one launch by {}\n", c.where);
  }
  if (shown < changes.size()) text += fmt::format("{:<8} and {} more\n", title, changes.size() - shown);
  return text;
}

/// "3 lost (1.20 MB, predicted 40.2 us)"
std::string sum_of(const std::vector<FusionChange>& changes, const char* what) {
  int64_t bytes = 0;
  double time = 0;
  bool priced = false;
  for (const FusionChange& c : changes)
    bytes += c.bytes.value_or(0), time += c.microseconds.value_or(0), priced |= c.bytes.has_value();
  const std::string text = fmt::format("{} {}", changes.size(), what);
  return priced ? fmt::format("{} ({}, predicted {:.1f} us)", text, megabytes(bytes), time) : text;
}

}  // namespace

PlanDiff diff_plans(const FusionPlan& first, const FusionPlan& second) {
  const bool by_groups = !says_what_runs(first) || !says_what_runs(second);
  const Ledger a(first, by_groups), b(second, by_groups);
  PlanDiff diff;
  size_t common = 0;
  for (const auto& [key, one] : a.edges()) {
    const EdgeVerdict* other = b.find(key);
    if (!other) {
      ++diff.only_in_first;
      diff.fused_in_first += a.is_fused(*one);
      continue;
    }
    ++common;
    const bool before = a.is_fused(*one), after = b.is_fused(*other);
    if (before && !after)
      diff.lost.push_back(change_of(*one, *other));
    else if (after && !before)
      diff.gained.push_back(change_of(*other, *one));
    else
      ++diff.alike;
  }
  for (const auto& [key, other] : b.edges()) {
    if (a.find(key)) continue;
    ++diff.only_in_second;
    diff.apart_in_second += !b.is_fused(*other);
  }
  if (common == 0 && !a.edges().empty() && !b.edges().empty())
    throw fail(E::bad_option, "the two have no edge in common: no names of nodes are the same")
        .hint("compare versions of one model; `opfuse inspect` shows the names of nodes");
  by_time(diff.lost), by_time(diff.gained);
  compare_modules(first, second, diff);
  return diff;
}

std::string diff_text(const PlanDiff& diff, size_t top) {
  std::string text;
  for (const auto& [module, counts] : diff.modules)
    text += fmt::format("MODULE   {}   {} -> {}\n", module, counts.first, counts.second);
  text += text_of(diff.lost, "LOST", top) + text_of(diff.gained, "GAINED", top);
  text += fmt::format("fusions: {}, {}; {} edges alike\n", sum_of(diff.lost, "lost"), sum_of(diff.gained, "gained"),
                      diff.alike);
  if (diff.only_in_first + diff.only_in_second > 0)
    text += fmt::format(
        "not compared, since the other has no such nodes: {} edges of the first ({} one launch), {} of "
        "the second ({} two launches)\n",
        diff.only_in_first, diff.fused_in_first, diff.only_in_second, diff.apart_in_second);
  return text;
}

}  // namespace opfuse
