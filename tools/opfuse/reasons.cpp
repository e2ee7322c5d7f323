// opfuse reasons: why two neighbours are not one launch, every code of the ledger.
#include "fusion/reasons.hpp"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "console.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {

std::function<int()> add_reasons(FlagSet& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "as JSON");
  return [json] {
    Table table({"code", "meaning", "what flips it"});
    Json rows = Json::array();
    for (const Reason& reason : reasons()) {
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
