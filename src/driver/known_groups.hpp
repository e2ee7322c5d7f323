// Answers about groups by their structure: each is worked out once, however many layers repeat it. What names a node
// (a decline) is worked out every time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "ir/group_structure.hpp"

namespace opfuse {

/// Copies share what they know. May be asked by several threads.
template <class Answer>
class KnownGroups {
 public:
  /// `ask()` where no group of this structure was asked about before; `keep(answer)`: it holds for all of them.
  template <class Ask, class Keep>
  Answer operator()(const Node& group, Ask&& ask, Keep&& keep) const {
    std::optional<Hash128> structure;
    {
      const std::lock_guard lock(state_->mutex);
      structure = state_->structure.of(group);
      if (structure)
        if (const auto at = state_->answers.find(*structure); at != state_->answers.end()) return at->second;
    }
    Answer answer = ask();
    if (!structure || !keep(answer)) return answer;
    const std::lock_guard lock(state_->mutex);
    return state_->answers.emplace(*structure, std::move(answer)).first->second;
  }

 private:
  struct State {
    std::mutex mutex;
    GroupStructure structure;
    std::map<Hash128, Answer> answers;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace opfuse
