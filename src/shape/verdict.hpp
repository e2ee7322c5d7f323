// What shaping passes say of the places they looked at: records. fusion/explain/shaping_text.hpp makes them readable.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/decline.hpp"
#include "ir/graph.hpp"

namespace opfuse {

struct ShapeVerdict {
  std::string pass;                    ///< "join-chains"
  std::string subject{};               ///< of passes that treat several kinds of things: which one, "attention"
  std::vector<std::string> nodes{};    ///< names of the groups (of the Linears: of their results), in topological order
  std::string value{};                 ///< name of what lies between them, or of what all of them read
  std::vector<std::string> sources{};  ///< nodes of the model in them
  std::map<std::string, int64_t> numbers{};       ///< "bytes" between them, "slices" ...
  std::optional<Decline> refused = std::nullopt;  ///< why it was not done

  std::string code() const { return refused ? refused->code : "done"; }
  int64_t number(const std::string& name) const { return numbers.contains(name) ? numbers.at(name) : 0; }
};

/// The verdicts of one pass.
std::vector<ShapeVerdict> of_pass(const std::vector<ShapeVerdict>& verdicts, std::string_view pass);

/// The name of a group in reports and of its launch: its label, or that of a node alone.
std::string name_of_group(const Node& node);

}  // namespace opfuse
