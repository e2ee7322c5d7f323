// The verb table.
#include "verb.hpp"

namespace opfuse::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = {
#define OPFUSE_VERB_ROW(name, summary) {#name, summary, add_##name},
      OPFUSE_VERBS(OPFUSE_VERB_ROW)
#undef OPFUSE_VERB_ROW
  };
  return table;
}

}  // namespace opfuse::cli
