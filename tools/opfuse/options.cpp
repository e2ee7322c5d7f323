// opfuse options: every option of every verb, asked from the parser itself, and the environment variables.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/limits.hpp"
#include "console.hpp"
#include "manual.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Variable {
  const char *name, *meaning;
};
constexpr Variable kVariables[] = {
    {"XDG_CACHE_HOME", "folder of the kernel cache (opfuse/kernels below it; default ~/.cache)"},
    {"XDG_STATE_HOME", "folder of reproducers (opfuse below it; default ~/.local/state)"},
    {"OPFUSE_LLVM_LIB", "the code generator, libopfuse_llvm.so, if it lies elsewhere than beside opfuse"},
    {"OPFUSE_LIBCUDA", "the CUDA driver, libcuda.so.1, if the dynamic linker does not find it"},
    {"OPFUSE_NVRTC", "NVIDIA's compiler, libnvrtc.so, if it is not in a usual place"},
    {"OPFUSE_PEERS_VENV", "virtual environment with onnxruntime, for the demo (default build/peers-venv)"},
    {"NO_COLOR", "opfuse never prints colours"},
};

Json json_of(const OptionRow& option) {
  return {{"option", option.name},
          {"value", option.value},
          {"default", option.default_value},
          {"meaning", option.meaning},
          {"positional", option.positional}};
}

}  // namespace

std::function<int()> add_options(FlagSet& app) {
  auto json = std::make_shared<bool>(false), man = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "as JSON");
  app.add_flag("--man", *man, "as a manual page (man 1 opfuse)");
  return [json, man, &app] {
    if (*man) {
      std::vector<std::pair<std::string, std::string>> variables;
      for (const Variable& variable : kVariables) variables.emplace_back(variable.name, variable.meaning);
      fmt::print("{}", manual_page(app.all_verbs(), variables));
      return kOk;
    }
    Json verbs = Json::object();
    Table table({"verb", "option", "default", "meaning"});
    for (const FlagSet& verb : app.all_verbs()) {
      Json rows = Json::array();
      for (const OptionRow& option : verb.rows()) {
        rows.push_back(json_of(option));
        table.row({verb.verb(), option.all_names, option.default_value, option.meaning});
      }
      verbs[verb.verb()] = std::move(rows);
    }
    Json variables = Json::array();
    for (const Variable& variable : kVariables)
      variables.push_back({{"name", variable.name}, {"meaning", variable.meaning}});
    Json limits = Json::array();
    for (const LimitRow& row : limit_rows())
      limits.push_back({{"name", row.name}, {"default", row.value}, {"meaning", row.meaning}});
    if (*json) {
      Json out = document("opfuse.options/1");
      out["verbs"] = std::move(verbs);
      out["environment"] = std::move(variables);
      out["limits"] = std::move(limits);
      print_json(out);
      return kOk;
    }
    fmt::print("{}\n", table.text());
    Table bounds({"limit", ">default", "of"});
    for (const LimitRow& row : limit_rows()) bounds.row({row.name, fmt::format("{}", row.value), row.meaning});
    fmt::print("{}\n", bounds.text());
    Table environment({"environment", "meaning"});
    for (const Variable& variable : kVariables) environment.row({variable.name, variable.meaning});
    fmt::print("{}", environment.text());
    return kOk;
  };
}

}  // namespace opfuse::cli
