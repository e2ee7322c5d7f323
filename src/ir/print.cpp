// The text form of a graph. parse.cpp reads back exactly what this prints:
//
//   graph @name(%x: f32[1,3,8,8], %w: f32[4,3,3,3]) {
//     meta "key" "value"
//     %b = const splat<0.5> : f32[4]
//     %c = conv(%x, %w, %b) {pads = [1,1,1,1]} : f32[1,4,8,8]  @"/conv1/Conv"(Conv@17)
//     %y = fused "ConvReLU" as "FusedConvReLU__conv1" (%x, %w as %k) { ... yield %r } : f32[1,4,8,8]
//     %t = for_parts (%y, %w) {parts = 4, cuts = [1,0], joins = [1]} { ... yield %r } : f32[1,4,8,8]
//     %a, %b = split(%y, _) : (f32[1,2,8,8], f32[1,2,8,8])
//     return %a, %b
//   }
//
// A value shows its name (quoted when it is not a clean identifier), an unnamed one a number in order of
// appearance. Attributes with their default value are left out. `_` is an absent operand. A composite's
// string is its label. `%outer as %inner` names a body's input where the names differ; bodies of operators with
// attributes stand behind those.
#include <fmt/format.h>

#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include "base/quote.hpp"
#include "ir/constant_text.hpp"
#include "ir/print_with.hpp"

namespace opfuse {

namespace {

bool is_clean(std::string_view name, std::string_view extra_first, std::string_view extra) {
  if (name.empty() ||
      !(std::isalpha(static_cast<unsigned char>(name[0])) || extra_first.find(name[0]) != std::string_view::npos))
    return false;
  for (char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && extra.find(c) == std::string_view::npos) return false;
  }
  return true;
}

std::string identifier(const std::string& name) { return is_clean(name, "_", "_.-") ? name : quote(name); }

std::string source_text(const Source& s) {
  std::string out = "@" + quote(s.name);
  if (s.op_type.empty() && s.domain.empty() && s.opset == 0) return out;
  out += "(";
  if (!s.domain.empty()) out += identifier(s.domain) + "::";
  out += identifier(s.op_type);
  if (s.opset != 0) out += fmt::format("@{}", s.opset);
  return out + ")";
}

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options, const std::function<std::string(const Tensor&)>& large,
          int depth)
      : graph_(graph), options_(options), large_(large), indent_(2 * static_cast<size_t>(depth), ' ') {
    for (const Value* v : graph.inputs()) name(v);
    for (const Value* v : graph.constants()) name(v);
    for (const Node* n : graph.nodes()) {
      for (const Value* v : n->outputs) name(v);
    }
  }

  std::string header() const {
    std::string out = "graph ";
    if (!graph_.name.empty()) out += "@" + identifier(graph_.name);
    out += "(";
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const Value* v = graph_.inputs()[i];
      out += fmt::format("{}{}: {}", i > 0 ? ", " : "", ref(v), v->type.text());
    }
    return out + ") ";
  }

  /// "{", the statements, `keyword` with the outputs, "}".
  std::string block(std::string_view keyword) const {
    std::string out = "{\n";
    if (!graph_.model_file.empty()) out += fmt::format("{}  file {}\n", indent_, quote(graph_.model_file));
    for (const auto& [key, value] : graph_.metadata)
      out += fmt::format("{}  meta {} {}\n", indent_, quote(key), quote(value));
    for (const Value* v : graph_.constants()) out += indent_ + "  " + constant(*v) + "\n";
    for (const Node* n : graph_.nodes()) out += indent_ + "  " + node(*n) + "\n";
    out += indent_ + "  " + std::string(keyword) + list(graph_.outputs()) + "\n" + indent_ + "}";
    return out;
  }

  const std::string& ref(const Value* v) const { return names_.at(v); }

 private:
  const Graph& graph_;
  const PrintOptions& options_;
  const std::function<std::string(const Tensor&)>& large_;
  std::string indent_;
  std::unordered_map<const Value*, std::string> names_;
  int next_ = 0;

  void name(const Value* v) {
    if (v->name.empty())
      names_.emplace(v, fmt::format("%{}", next_++));
    else
      names_.emplace(v, "%" + (is_clean(v->name, "_/", "_./-") ? v->name : quote(v->name)));
  }

  std::string list(const std::vector<Value*>& values) const {
    std::string out;
    for (size_t i = 0; i < values.size(); ++i) out += (i > 0 ? ", " : " ") + ref(values[i]);
    return out;
  }

  std::string constant(const Value& v) const {
    auto text = constant_text(*v.constant, options_.max_constant_elements);
    return fmt::format("{} = const {} : {}", ref(&v), text ? *text : large_(*v.constant), v.type.text());
  }

  std::string operands(const Node& n, const Printer* body) const {
    std::string out;
    std::unordered_set<std::string> taken;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (i > 0) out += ", ";
      const std::string outer = n.inputs[i] == nullptr ? "_" : ref(n.inputs[i]);
      out += outer;
      if (body == nullptr || i >= n.body->inputs().size()) continue;
      const Value* inner = n.body->inputs()[i];
      if (body->ref(inner) != outer || !taken.insert(outer).second) out += " as " + body->ref(inner);
      if (n.inputs[i] == nullptr) out += ": " + inner->type.text();
    }
    return out;
  }

  std::string attributes(const Node& n) const {
    std::string out;
    const bool shown = n.op->has_body && n.op->attrs_to_map;  // the next brace would be the body's
    for (const auto& [key, value] : n.attr_map()) {
      const AttrValue* preset = find(n.op->default_attrs, key);
      if (preset != nullptr && text_of(*preset) == text_of(value)) continue;
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", key, text_of(value));
    }
    return out.empty() && !shown ? out : " {" + out + "}";
  }

  std::string types(const Node& n) const {
    if (!options_.types || n.outputs.empty()) return "";
    if (n.outputs.size() == 1) return " : " + n.outputs[0]->type.text();
    std::string out;
    for (const Value* v : n.outputs) out += (out.empty() ? "" : ", ") + v->type.text();
    return " : (" + out + ")";
  }

  std::string node(const Node& n) const {
    std::string out = n.outputs.empty() ? "()" : list(n.outputs).substr(1);
    out += " = " + n.op->name;
    if (n.op->has_body && n.body) {
      const bool composite = n.op == composite_op();
      const std::string& first = composite ? n.label : n.pattern;
      const std::string& second = composite ? n.pattern : n.label;
      if (!n.op->attrs_to_map || !first.empty() || !second.empty()) out += " " + quote(first);
      if (!second.empty()) out += " as " + quote(second);
      const Printer body(*n.body, options_, large_, static_cast<int>(indent_.size() / 2) + 1);
      out += " (" + operands(n, &body) + ")" + attributes(n) + " " + body.block("yield");
    } else {
      out += "(" + operands(n, nullptr) + ")" + attributes(n);
    }
    out += types(n);
    if (options_.sources) {
      for (const Source& s : n.sources) out += "  " + source_text(s);
    }
    return out;
  }
};

void collect(const Graph& graph, ConstantData& into) {
  for (const Value* v : graph.constants()) into.emplace(content_hash(*v->constant).hex(), *v->constant);
  for (const Node* n : graph.nodes()) {
    if (n->body) collect(*n->body, into);
  }
}

}  // namespace

std::string print_with(const Graph& graph, const PrintOptions& options,
                       const std::function<std::string(const Tensor&)>& large) {
  const Printer printer(graph, options, large, 0);
  return printer.header() + printer.block("return") + "\n";
}

std::string print(const Graph& graph, const PrintOptions& options) {
  return print_with(graph, options, [](const Tensor& t) { return fmt::format("data<\"{}\">", content_hash(t).hex()); });
}

std::string print(const Graph& graph) { return print(graph, PrintOptions{}); }

ConstantData constant_data(const Graph& graph) {
  ConstantData data;
  collect(graph, data);
  return data;
}

}  // namespace opfuse
