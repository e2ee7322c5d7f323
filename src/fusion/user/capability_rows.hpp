// Rows of a target's file, parsed: names resolved, conditions as predicates.
#pragma once

#include <string>
#include <vector>

#include "fusion/patterns.hpp"
#include "fusion/user/operator_names.hpp"
#include "target/capabilities.hpp"

namespace opfuse {

struct ParsedOperator {
  OperatorSet ops;
  std::vector<MatchPredicate> where;  ///< on `op`
  std::string place;                  ///< "npu.toml:12"
};

struct ParsedSlot {
  OperatorSet ops;
  std::vector<MatchPredicate> where;  ///< on `op` and `anchor`
  int64_t most = 1;
  std::string operand, words;  ///< words: its operators as the file has them
};

struct ParsedAnchor {
  OperatorSet ops;
  std::vector<MatchPredicate> where;
  std::vector<ParsedSlot> prologue, epilogue;
  int64_t most_prologue = 0, most_epilogue = 0;
  std::string place;
};

struct ParsedLeave {
  Pattern topology;
  std::vector<MatchPredicate> where;
  std::string name, why, place;
};

struct ParsedCapabilities {
  std::string target;
  bool generates = true;  ///< without rows opfuse's generator answers; else nothing but what is listed fuses
  GroupLimits limits;
  std::vector<ParsedOperator> operators;
  std::vector<ParsedAnchor> anchors;
  std::vector<FusionPattern> composites;
  std::vector<std::string> points;  ///< kinds of Q/DQ points in use; none: all
  std::vector<ParsedLeave> leave;
};

/// Why a group is none of what the target takes; its nodes in topological order.
std::optional<Decline> judge_group(const ParsedCapabilities& rules, const Graph& body);
std::optional<Decline> judge_operator(const ParsedCapabilities& rules, const Node& node);
std::optional<Decline> judge_limits(const ParsedCapabilities& rules, const Node& fused);

}  // namespace opfuse
