// opfuse errors: every error code, from the table that errors are made of.
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

/// Empty: all of them.
static void check_code(const std::string& wanted) {
  std::vector<std::string> known;
  for (const ErrorCodeInfo& info : error_codes()) known.insert(known.end(), {info.code, info.name});
  if (!wanted.empty() && std::find(known.begin(), known.end(), wanted) == known.end())
    throw fail(E::unknown_name, "there is no error '{}'", wanted)
        .hint(did_you_mean(wanted, known))
        .hint("opfuse errors lists all");
}

std::function<int()> add_errors(FlagSet& app) {
  auto json = std::make_shared<bool>(false);
  auto wanted = std::make_shared<std::string>();
  app.add_option("CODE", *wanted, "this one alone, by code or name: E0205, unknown_dimension");
  app.add_flag("--json", *json, "as JSON");
  return [json, wanted] {
    check_code(*wanted);
    Table table({"code", "name", "exit", "meaning"});
    Json rows = Json::array();
    for (const ErrorCodeInfo& info : error_codes()) {
      if (!wanted->empty() && *wanted != info.code && *wanted != info.name) continue;
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
