// Why something was not done: an answer, never an error.
#pragma once

#include <string>
#include <vector>

namespace opfuse {

/// `code` is stable snake_case ("multi_consumer", "stage_sequence"), `message` one sentence, `evidence` names nodes
/// and numbers.
struct Decline {
  std::string code;
  std::string message;
  std::vector<std::string> evidence;
  bool operator==(const Decline&) const = default;
};

}  // namespace opfuse
