// Parsing the rows of a target's file, once, with the parsers of pattern files; judge_group.cpp asks them.
#include "fusion/user/capability_rules.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "fusion/grouping.hpp"
#include "fusion/user/capability_rows.hpp"
#include "fusion/user/pattern_file.hpp"
#include "fusion/user/pattern_text.hpp"
#include "ir/body.hpp"
#include "match/activation.hpp"

namespace opfuse {
namespace {

constexpr std::array kCapabilityCodes = {"no_operator",      "operator_condition", "no_anchor",
                                         "anchor_condition", "prologue_operator",  "epilogue_operator",
                                         "epilogue_order",   "epilogue_length",    "epilogue_condition",
                                         "precondition",     "instruction",        "target_limit"};

const std::vector<std::string>& point_names() {
  static const std::vector<std::string> names{"INPUT", "RESIDUAL_INPUT", "KEY_INPUT", "VALUE_INPUT", "OUTPUT"};
  return names;
}

TextPlace at(const PlacedText& text) { return {text.file, text.line, text.column}; }

class Compiler {
 public:
  Compiler(const TargetInfo& target, std::vector<TargetMistake>* mistakes) : target_(target), mistakes_(mistakes) {}

  ParsedCapabilities run(const Capabilities& from) {
    ParsedCapabilities out{.target = target_.name, .generates = has_generator(target_), .limits = from.limits};
    for (const OperatorRow& row : from.operators) {
      ParsedOperator one{ops_of(row.ops), {}, row.name.place()};
      one.where = conditions(row.where, any_op(names_of(one.ops), "op"));
      out.operators.push_back(std::move(one));
    }
    for (const AnchorRow& row : from.anchors) out.anchors.push_back(anchor(row));
    for (const CompositeRow& row : from.composites) attempt([&] { out.composites.push_back(composite(row)); });
    for (const PlacedText& point : from.quantize.points) {
      if (std::find(point_names().begin(), point_names().end(), point.text) == point_names().end())
        wrong(point, fmt::format("there is no Q/DQ point '{}'", point.text), did_you_mean(point.text, point_names()));
      out.points.push_back(point.text);
    }
    for (const LeaveRow& row : from.quantize.leave)
      attempt([&] {
        ParsedLeave one{
            parse_topology(row.topology.text, at(row.topology)), {}, row.name.text, row.why.text, row.topology.place()};
        one.where = conditions(row.where, one.topology);
        out.leave.push_back(std::move(one));
      });
    return out;
  }

 private:
  const TargetInfo& target_;
  std::vector<TargetMistake>* mistakes_;

  void wrong(const PlacedText& text, std::string message, std::string hint) {
    if (!mistakes_)
      throw fail(E::bad_file, "{}:{}:{}: {}", text.file, text.line, text.column, message).hint(std::move(hint));
    mistakes_->push_back({text.file, text.line, text.column, std::move(message), std::move(hint)});
  }

  /// Parsers throw "file:line:column: message".
  template <class Parse>
  void attempt(Parse parse) {
    try {
      parse();
    } catch (const Error& error) {
      if (!mistakes_ || error.diagnostic().name != "bad_file") throw;
      mistakes_->push_back(mistake_of(error.diagnostic()));
    }
  }
  static TargetMistake mistake_of(const Diagnostic& d) {
    const size_t toml = d.message.find(".toml:");
    size_t end = toml == std::string::npos ? 0 : toml + 5;
    TargetMistake m{d.message.substr(0, end), 1, 1, d.message, d.hint};
    if (end == 0) return m;
    char* rest = nullptr;
    m.line = std::strtoul(d.message.c_str() + end + 1, &rest, 10);
    if (*rest == ':') m.column = std::strtoul(rest + 1, &rest, 10);
    const size_t from = static_cast<size_t>(rest - d.message.c_str()) + 2;
    m.message = from < d.message.size() ? d.message.substr(from) : d.message;
    return m;
  }

  OperatorSet ops_of(const std::vector<PlacedText>& words) {
    OperatorSet set;
    for (const PlacedText& word : words) {
      if (add_operators(set, word.text)) continue;
      std::vector<std::string> known = operator_names();
      known.insert(known.end(), kind_words().begin(), kind_words().end());
      wrong(word, fmt::format("there is no operator '{}'", word.text), did_you_mean(word.text, known));
    }
    return set;
  }

  static std::vector<std::string> names_of(const OperatorSet& set) {
    std::vector<std::string> names(set.names.begin(), set.names.end());
    if (set.activation) {
      const std::vector<std::string> eight = activation().chain().front()->ops;
      names.insert(names.end(), eight.begin(), eight.end());
    }
    return names;
  }

  std::vector<MatchPredicate> conditions(const std::vector<PlacedText>& texts, const Pattern& topology) {
    std::vector<MatchPredicate> all;
    for (const PlacedText& text : texts)
      attempt([&] { all.push_back(parse_condition(text.text, topology, at(text))); });
    return all;
  }

  std::vector<ParsedSlot> slots(const std::vector<FusionSlot>& from, const OperatorSet& anchor) {
    std::vector<ParsedSlot> all;
    for (const FusionSlot& slot : from) {
      ParsedSlot one{ops_of(slot.ops), {}, slot.most, slot.operand.text, {}};
      std::vector<std::string> words;
      for (const PlacedText& op : slot.ops) words.push_back(op.text);
      one.words = fmt::format("{}", fmt::join(words, " or "));
      one.where = conditions(slot.where, any_op(names_of(anchor), "anchor") >> any_op(names_of(one.ops), "op"));
      all.push_back(std::move(one));
    }
    return all;
  }

  ParsedAnchor anchor(const AnchorRow& row) {
    ParsedAnchor one{.ops = ops_of(row.ops)};
    one.where = conditions(row.where, any_op(names_of(one.ops), "op"));
    one.prologue = slots(row.prologue, one.ops);
    one.epilogue = slots(row.epilogue, one.ops);
    one.most_prologue = row.most_prologue;
    one.most_epilogue = row.most_epilogue;
    one.place = row.name.place();
    return one;
  }

  FusionPattern composite(const CompositeRow& row) {
    for (const FusionPattern& pattern : fusion_patterns())
      if (pattern.name == row.name.text)
        throw fail(E::bad_file, "{}:{}:{}: the catalogue has a pattern {}", row.name.file, row.name.line,
                   row.name.column, pattern.name)
            .hint("give the composite another name");
    PatternText text{
        row.name.text, row.module.text, row.about.text, row.root.text, {row.topology.text, at(row.topology)}, {}, {},
        kMostPriority};
    for (const PlacedText& where : row.where) text.where.push_back({where.text, at(where)});
    for (const auto& [point, binding] : row.points) text.points.emplace_back(point.text, binding.text);
    FusionPattern pattern = make_pattern(text);
    pattern.priority = kMostPriority + 1;  // before any pattern of a file
    pattern.needs = conditions(row.needs, pattern.topology);
    pattern.closed = true;
    return pattern;
  }
};

}  // namespace

struct CapabilityRules::Rules : ParsedCapabilities {};

CapabilityRules::CapabilityRules(const TargetInfo& target, const Capabilities& said,
                                 std::vector<TargetMistake>* mistakes)
    : rules_(std::make_unique<const Rules>(Rules{Compiler(target, mistakes).run(said)})) {}

CapabilityRules::~CapabilityRules() = default;

std::optional<Decline> CapabilityRules::refuse(const Node& fused) const {
  if (auto decline = judge_limits(*rules_, fused)) return decline;
  if (is_composite(fused.pattern)) return std::nullopt;
  if (!fused.body || !stands_for_body(fused)) return judge_operator(*rules_, fused);
  for (const Node* node : fused.body->nodes())
    if (auto decline = judge_operator(*rules_, *node)) return decline;
  return judge_group(*rules_, *fused.body);
}

std::optional<Decline> CapabilityRules::refuse_operator(const Node& node) const {
  return judge_operator(*rules_, node);
}

const std::vector<FusionPattern>& CapabilityRules::composites() const { return rules_->composites; }

bool CapabilityRules::is_composite(std::string_view pattern) const {
  return std::any_of(rules_->composites.begin(), rules_->composites.end(),
                     [&](const FusionPattern& p) { return p.name == pattern; });
}

bool CapabilityRules::uses_point(std::string_view point) const {
  return rules_->points.empty() ||
         std::find(rules_->points.begin(), rules_->points.end(), point) != rules_->points.end();
}

std::vector<LeftByTarget> CapabilityRules::left_by(const Grouping& grouping, const Candidate& c) const {
  const auto holds = [&](const ParsedLeave& row) {
    return std::any_of(c.nodes.begin(), c.nodes.end(), [&](const std::string& name) {
      Node* const node = grouping.names().find(name);
      return node && grouping.matcher().match(row.topology, node, row.where, Detail::codes);
    });
  };
  std::vector<LeftByTarget> rows;
  for (const ParsedLeave& row : rules_->leave)
    if (holds(row)) rows.push_back({row.name, row.why, row.place});
  return rows;
}

void CapabilityRules::settle_points(const Graph& graph, FusionPlan& plan) const {
  if (rules_->points.empty() && rules_->leave.empty()) return;
  const Grouping grouping(graph);
  for (Candidate& c : plan.candidates) {
    if (c.points.empty()) continue;
    std::erase_if(c.points, [&](const QdqPoint& p) { return !uses_point(p.point); });
    if (const auto rows = left_by(grouping, c); !rows.empty()) {
      c.points.clear();
      c.notes.push_back(fmt::format("stays in floating point on {}: {}", rules_->target, rows[0].why));
    }
  }
}

std::shared_ptr<const CapabilityRules> capability_rules(const TargetInfo& target) {
  const Capabilities& said = capabilities_of(target);
  const bool groups = !said.operators.empty() || !said.anchors.empty() || !said.composites.empty() || said.limits.any();
  const bool points = !said.quantize.points.empty() || !said.quantize.leave.empty();
  if (has_generator(target) && !groups && !points) return nullptr;
  return std::make_shared<const CapabilityRules>(target, said);
}

bool is_capability(std::string_view code) {
  return std::find(kCapabilityCodes.begin(), kCapabilityCodes.end(), code) != kCapabilityCodes.end();
}

}  // namespace opfuse
