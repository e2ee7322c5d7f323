// opfuse reasons: why two neighbours are not one launch, every code of the ledger.
#include "fusion/reasons.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "console.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {

/// Empty: all of them.
static void check_code(const std::string& wanted) {
  std::vector<std::string> known;
  for (const Reason& reason : reasons()) known.emplace_back(reason.code);
  if (!wanted.empty() && std::find(known.begin(), known.end(), wanted) == known.end())
    throw fail(E::unknown_name, "there is no reason '{}'", wanted)
        .hint(did_you_mean(wanted, known))
        .hint("opfuse reasons lists all");
}

std::function<int()> add_reasons(FlagSet& app) {
  auto json = std::make_shared<bool>(false);
  auto wanted = std::make_shared<std::string>();
  app.add_option("CODE", *wanted, "this one alone");
  app.add_flag("--json", *json, "as JSON");
  return [json, wanted] {
    check_code(*wanted);
    Table table({"code", "meaning", "what flips it"});
    Json rows = Json::array();
    for (const Reason& reason : reasons()) {
      if (!wanted->empty() && *wanted != reason.code) continue;
      const std::string change(reason.change.empty() ? kNoChangeFlips : reason.change);
      table.row({std::string(reason.code), std::string(reason.meaning), change});
      rows.push_back({{"code", reason.code}, {"meaning", reason.meaning}, {"change", change}});
    }
    if (*json) {
      Json out = document("opfuse.reasons/1");
      out["reasons"] = std::move(rows);
      print_json(out);
    } else {
      fmt::print("{}", table.text());
    }
    return kOk;
  };
}

}  // namespace opfuse::cli
