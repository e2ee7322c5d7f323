// Names of operators, of composites that recomposition makes, and of kinds, which stand for all operators of theirs.
#include "fusion/user/operator_names.hpp"

#include <algorithm>

#include "match/activation.hpp"
#include "match/pattern.hpp"
#include "ops/registry.hpp"
#include "passes/recompose.hpp"

namespace opfuse {
namespace {

struct KindWord {
  const char* word;
  OpKind kind;
};
constexpr KindWord kKinds[] = {{"elementwise", OpKind::elementwise},
                               {"movement", OpKind::injective},
                               {"reduction", OpKind::reduction},
                               {"window", OpKind::window},
                               {"contraction", OpKind::contraction}};

}  // namespace

const std::vector<std::string>& operator_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names{"mha_in_projection"};
    for (const OpInfo* info : ops().all()) names.push_back(info->name);
    for (const auto* list : {&activation_spellings(), &norm_spellings(), &attention_spellings(), &movement_spellings()})
      for (const Spelling& s : *list) names.push_back(s.op);
    return names;
  }();
  return kNames;
}

const std::vector<std::string>& kind_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all{"activation"};
    for (const KindWord& kind : kKinds) all.emplace_back(kind.word);
    return all;
  }();
  return words;
}

bool OperatorSet::has(const Node& node) const {
  return names.contains(operator_name(node)) || (activation && !activation_name(node).empty());
}

bool add_operators(OperatorSet& set, const std::string& word) {
  if (word == "activation") return set.activation = true;
  for (const KindWord& kind : kKinds) {
    if (word != kind.word) continue;
    for (const OpInfo* info : ops().all())
      if (info->kind == kind.kind || (info->name == "batch_norm" && kind.kind == OpKind::elementwise))
        set.names.insert(info->name);
    if (kind.kind == OpKind::elementwise)
      for (const Spelling& s : activation_spellings()) set.names.insert(s.op);
    if (kind.kind == OpKind::injective)
      for (const Spelling& s : movement_spellings()) set.names.insert(s.op);
    return true;
  }
  const std::vector<std::string>& known = operator_names();
  if (std::find(known.begin(), known.end(), word) == known.end()) return false;
  return set.names.insert(word), true;
}

}  // namespace opfuse
