// opfuse ops: the operators opfuse knows, from the registry.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "console.hpp"
#include "ops/registry.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

const char* kind_name(OpKind kind) {
  switch (kind) {
    case OpKind::elementwise:
      return "elementwise";
    case OpKind::injective:
      return "injective";
    case OpKind::reduction:
      return "reduction";
    case OpKind::window:
      return "window";
    case OpKind::contraction:
      return "contraction";
    case OpKind::shape:
      return "shape";
    case OpKind::composite:
      return "composite";
    case OpKind::opaque:
      return "opaque";
  }
  return "?";
}

std::string signature(const OpInfo& op) {
  const auto ports = [](const std::vector<PortSpec>& specs) {
    std::string text;
    for (const PortSpec& port : specs)
      text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", port.name, port.optional ? "?" : "",
                          port.variadic ? "..." : "");
    return text;
  };
  return fmt::format("({}) -> {}", ports(op.inputs), ports(op.outputs));
}

Json json_of(const OpInfo& op) {
  Json attributes = Json::object();
  for (const auto& [name, value] : op.default_attrs) attributes[name] = text_of(value);
  return {{"name", op.name},
          {"kind", kind_name(op.kind)},
          {"signature", signature(op)},
          {"attributes", attributes},
          {"doc", op.doc}};
}

const OpInfo& found(const std::string& name) {
  if (const OpInfo* op = ops().find(name)) return *op;
  std::vector<std::string> names;
  for (const OpInfo* op : ops().all()) names.push_back(op->name);
  const std::string near = did_you_mean(name, names);
  throw fail(E::unknown_name, "there is no operator '{}'", name).hint(near.empty() ? "opfuse ops lists them" : near);
}

int show_one(const std::string& name) {
  const OpInfo& op = found(name);
  fmt::print("{}{}   {}\n  {}\n", op.name, signature(op), kind_name(op.kind), op.doc);
  for (const auto& [attribute, value] : op.default_attrs) fmt::print("  {} = {}\n", attribute, text_of(value));
  return kOk;
}

}  // namespace

std::function<int()> add_ops(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  app.add_option("NAME", *name, "one operator in full");
  app.add_flag("--json", *json, "as JSON");
  return [name, json] {
    if (!name->empty() && !*json) return show_one(*name);
    if (*json) {
      Json rows = Json::array();
      for (const OpInfo* op : ops().all())
        if (name->empty() || op->name == *name) rows.push_back(json_of(*op));
      if (rows.empty()) found(*name);
      Json out = document("opfuse.ops/1");
      out["ops"] = std::move(rows);
      print_json(out);
      return kOk;
    }
    Table table({"operator", "kind", "signature", "meaning"});
    for (const OpInfo* op : ops().all()) table.row({op->name, kind_name(op->kind), signature(*op), op->doc});
    fmt::print("{}", table.text());
    return kOk;
  };
}

}  // namespace opfuse::cli
