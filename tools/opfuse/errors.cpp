// opfuse errors: every error code, from the table that errors are made of.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "console.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {

int exit_code_of(const Diagnostic& diagnostic) {
  if (diagnostic.name == "internal") return kInternal;
  if (diagnostic.name == "cancelled") return kInterrupted;
  switch (diagnostic.code.size() > 2 ? diagnostic.code[2] : '0') {
    case '4':
      return kUsage;
    case '6':
      return kRuntime;
    case '7':
      return kFiles;
    default:
      return kBadModel;
  }
}

std::function<int()> add_errors(FlagSet& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "as JSON");
  return [json] {
    Table table({"code", "name", "exit", "meaning"});
    Json rows = Json::array();
    for (const ErrorCodeInfo& info : error_codes()) {
      Diagnostic diagnostic;
      diagnostic.code = info.code;
      diagnostic.name = info.name;
      const int code = exit_code_of(diagnostic);
      table.row({info.code, info.name, std::to_string(code), info.doc});
      rows.push_back({{"code", info.code}, {"name", info.name}, {"exit_code", code}, {"doc", info.doc}});
    }
    if (*json) {
      Json out = document("opfuse.errors/1");
      out["errors"] = std::move(rows);
      print_json(out);
    } else {
      fmt::print("{}", table.text());
    }
    return kOk;
  };
}

}  // namespace opfuse::cli
