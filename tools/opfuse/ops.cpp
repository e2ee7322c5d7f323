// opfuse ops: the operators opfuse knows, from the registry, and those of ONNX that it reads, from the import table.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "console.hpp"
#include "onnx/import_table.hpp"
#include "onnx/read.hpp"
#include "ops/registry.hpp"
#include "program/uncompilable.hpp"
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

std::string opsets(const onnx::OperatorSupport& onnx) {
  const int64_t since = std::max(onnx.since, kOldestOpset);
  return onnx.until > 0 ? fmt::format("opset {} to {}", since, onnx.until - 1) : fmt::format("opset {} on", since);
}

/// "Conv", "com.microsoft.FusedConv"
std::string full_name(const onnx::OperatorSupport& onnx) {
  return onnx.domain.empty() ? onnx.onnx : onnx.domain + "." + onnx.onnx;
}

/// What the argument names: an operator of opfuse, of ONNX (in any case), or of ONNX as others of opfuse.
struct Named {
  const OpInfo* op = nullptr;
  std::vector<onnx::OperatorSupport> onnx;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

Named found(const std::string& name) {
  Named named{ops().find(name), {}};
  std::vector<std::string> names;
  for (const OpInfo* op : ops().all()) names.push_back(op->name);
  for (const onnx::OperatorSupport& onnx : onnx::all_operator_support()) {
    names.push_back(onnx.onnx);
    if (named.op ? onnx.op == named.op->name : lower(onnx.onnx) == lower(name) || lower(full_name(onnx)) == lower(name))
      named.onnx.push_back(onnx);
  }
  if (!named.op && named.onnx.empty() && remedy_for(name).empty()) {
    const std::string near = did_you_mean(name, names);
    throw fail(E::unknown_name, "'{}' is neither an operator of opfuse nor one of ONNX that it reads", name)
        .hint(near.empty() ? "opfuse ops lists both" : near);
  }
  if (!named.op && !named.onnx.empty() && !named.onnx[0].op.empty()) named.op = ops().find(named.onnx[0].op);
  return named;
}

std::string how_read(const onnx::OperatorSupport& onnx) {
  if (!onnx.how.empty()) return "read " + onnx.how;
  return onnx.op.empty() ? "read as a composition of other operators" : "read as " + onnx.op;
}

int show_one(const std::string& name) {
  const Named named = found(name);
  for (const onnx::OperatorSupport& onnx : named.onnx)
    fmt::print("{}{}, {}: {}\n", onnx.domain.empty() ? "ONNX " : "", full_name(onnx), opsets(onnx), how_read(onnx));
  if (named.onnx.empty() && !named.op) fmt::print("ONNX {}: not read\n", name);
  const std::string_view remedy = remedy_for(named.onnx.empty() ? name : named.onnx[0].onnx);
  if (!remedy.empty()) fmt::print("  where it stops a model: {}\n", remedy);
  if (!named.op) return kOk;
  const OpInfo& op = *named.op;
  fmt::print("{}{}   {}\n  {}\n", op.name, signature(op), kind_name(op.kind), op.doc);
  for (const auto& [attribute, value] : op.default_attrs) fmt::print("  {} = {}\n", attribute, text_of(value));
  return kOk;
}

}  // namespace

std::function<int()> add_ops(FlagSet& app) {
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  app.add_option("NAME", *name, "one operator in full, by its name here or in ONNX");
  app.add_flag("--json", *json, "as JSON");
  return [name, json] {
    if (!name->empty() && !*json) return show_one(*name);
    if (*json) {
      Json rows = Json::array();
      for (const OpInfo* op : ops().all())
        if (name->empty() || op == found(*name).op) rows.push_back(json_of(*op));
      Json out = document("opfuse.ops/1");
      out["ops"] = std::move(rows);
      Json names = Json::array();
      for (const onnx::OperatorSupport& onnx : name->empty() ? onnx::all_operator_support() : found(*name).onnx)
        names.push_back({{"onnx", onnx.onnx},
                         {"domain", onnx.domain},
                         {"operator", onnx.op},
                         {"since", std::max(onnx.since, kOldestOpset)},
                         {"until", onnx.until},
                         {"how", how_read(onnx)}});
      out["onnx"] = std::move(names);
      print_json(out);
      return kOk;
    }
    Table table({"operator", "kind", "signature", "meaning"});
    for (const OpInfo* op : ops().all()) table.row({op->name, kind_name(op->kind), signature(*op), op->doc});
    fmt::print("{}", table.text());
    Table onnx_table({"ONNX", "opsets", "read as"});
    for (const onnx::OperatorSupport& onnx : onnx::all_operator_support())
      onnx_table.row({full_name(onnx), opsets(onnx),
                      !onnx.how.empty() ? onnx.how
                      : onnx.op.empty() ? "a composition"
                                        : onnx.op});
    fmt::print("{}", onnx_table.text());
    return kOk;
  };
}

}  // namespace opfuse::cli
