// Reads the text form (see print.cpp). Anything else is E::bad_text with line and column; nothing in the
// text can make it crash, recurse without bound or allocate without bound.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/did_you_mean.hpp"
#include "base/quote.hpp"
#include "ir/body.hpp"
#include "ir/parse_constant.hpp"
#include "ir/scanner.hpp"

namespace opfuse {

namespace {

constexpr int kMaxBodyDepth = 50;  // a bound on the C++ stack

template <class T>
bool read_exactly(std::string_view text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// The name a printed reference stands for: "" for a number.
std::string name_of_ref(const std::string& ref) {
  if (ref[1] == '"') {
    size_t at = 1;
    return *unquote(ref, at);
  }
  const bool digits = std::all_of(ref.begin() + 1, ref.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? std::string() : ref.substr(1);
}

class GraphParser {
 public:
  GraphParser(std::string_view text, const OpRegistry& registry, const ParseOptions& options)
      : in_(text), registry_(registry), options_(options) {}

  Graph run() {
    Graph graph;
    if (!in_.take_word("graph")) in_.expected("\"graph\"");
    if (in_.take('@')) graph.name = in_.identifier();
    Scope scope{graph, {}};
    in_.need('(');
    while (!in_.peek(')')) {
      const std::string ref = in_.value_ref();
      in_.need(':');
      define(scope, ref, graph.add_input({}, type()));
      if (!in_.take(',')) break;
    }
    in_.need(')');
    block(scope, "return", 0);
    if (!in_.at_end()) in_.expected("the end of the text");
    return graph;
  }

 private:
  struct Scope {
    Graph& graph;
    std::unordered_map<std::string, Value*> values;
  };
  Scanner in_;
  size_t statement_ = 0;  ///< where the current one starts
  const OpRegistry& registry_;
  const ParseOptions& options_;

  TensorType type() { return in_.tensor_type(); }

  void define(Scope& scope, const std::string& ref, Value* value) {
    if (!scope.values.emplace(ref, value).second) in_.stop(fmt::format("{} is defined twice", ref));
    value->name = name_of_ref(ref);
  }

  Value* use(const Scope& scope, const std::string& ref) {
    auto found = scope.values.find(ref);
    if (found != scope.values.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& entry : scope.values) known.push_back(entry.first);
    std::sort(known.begin(), known.end());
    const std::string close = closest_name(ref, known);
    in_.stop(fmt::format("{} is not defined{}", ref, close.empty() ? "" : fmt::format("; did you mean {}?", close)));
  }

  void block(Scope& scope, std::string_view last, int depth) {
    if (depth > kMaxBodyDepth) in_.stop(fmt::format("bodies are nested more than {} deep", kMaxBodyDepth));
    in_.need('{');
    for (;;) {
      if (in_.take_word(last)) break;
      if (in_.peek('%') || in_.peek('(')) {
        statement(scope, depth);
      } else if (in_.take_word("meta")) {
        std::string key = in_.quoted();
        scope.graph.metadata.emplace_back(std::move(key), in_.quoted());
      } else if (in_.take_word("file")) {
        scope.graph.model_file = in_.quoted();
      } else {
        in_.expected(fmt::format("a statement or \"{}\"", last));
      }
    }
    std::vector<Value*> outputs;
    while (in_.peek('%')) {
      outputs.push_back(use(scope, in_.value_ref()));
      if (!in_.take(',')) break;
    }
    scope.graph.set_outputs(std::move(outputs));
    in_.need('}');
  }

  void statement(Scope& scope, int depth) {
    statement_ = in_.position();
    std::vector<std::string> results;
    if (in_.take('(')) {
      in_.need(')');
    } else {
      do results.push_back(in_.value_ref());
      while (in_.take(','));
    }
    in_.need('=');
    if (in_.take_word("const")) {
      if (results.size() != 1) in_.stop("a constant has one name");
      define(scope, results[0], scope.graph.add_constant(parse_constant(in_, options_)));
      return;
    }
    const OpInfo* op = operator_named();
    if (op->has_body)
      body_node(scope, *op, results, depth);
    else
      plain_node(scope, *op, results);
  }

  const OpInfo* operator_named() {
    in_.skip();
    const size_t here = in_.position();
    const std::string name = in_.word();
    if (name.empty()) in_.expected("an operator");
    for (const BodyLaw& law : body_laws()) {
      if (law.op->name == name) return law.op;
    }
    if (opaque_op()->name == name) return opaque_op();
    if (const OpInfo* op = registry_.find(name)) return op;
    std::vector<std::string> known;
    for (const OpInfo* op : registry_.all()) known.push_back(op->name);
    in_.rewind(here);
    const std::string close = closest_name(name, known);
    in_.stop(fmt::format("unknown operator \"{}\"{}", name,
                         close.empty() ? "" : fmt::format("; did you mean \"{}\"?", close)));
  }

  // ---- nodes

  void plain_node(Scope& scope, const OpInfo& op, const std::vector<std::string>& results) {
    in_.need('(');
    std::vector<Value*> operands;
    while (!in_.peek(')')) {
      operands.push_back(in_.take('_') ? nullptr : use(scope, in_.value_ref()));
      if (!in_.take(',')) break;
    }
    in_.need(')');
    const AttrMap attrs = attributes();
    const std::vector<TensorType> declared = types(results.size());
    const std::vector<Source> sources = node_sources();
    in_.located(statement_, [&] { add(scope, op, attrs, operands, results, declared, sources); });
  }

  void add(Scope& scope, const OpInfo& op, const AttrMap& attrs, const std::vector<Value*>& operands,
           const std::vector<std::string>& results, const std::vector<TensorType>& declared,
           const std::vector<Source>& sources) {
    std::shared_ptr<const void> typed;
    if (op.attrs_from_map)
      typed = op.attrs_from_map(attrs);
    else if (!attrs.empty())
      in_.stop(fmt::format("{} has no attributes", op.name));
    Node* node = nullptr;
    try {
      node = scope.graph.add_node(&op, typed, operands, results.size(), sources);
    } catch (const Error& error) {
      const bool undecided = error.diagnostic().name == "unknown_dimension" && !declared.empty();
      if (!undecided) throw;
      node = scope.graph.add_node(&op, typed, operands, results.size(), sources, nullptr, declared);
    }
    finish(scope, *node, results, declared);
  }

  void finish(Scope& scope, Node& node, const std::vector<std::string>& results,
              const std::vector<TensorType>& declared) {
    for (size_t i = 0; i < results.size(); ++i) {
      Value* value = node.outputs[i];
      define(scope, results[i], value);
      if (declared.empty()) continue;
      if (!compatible(value->type, declared[i])) {
        in_.stop(fmt::format("{} is declared {} but {} gives {}", results[i], declared[i].text(), node.op->name,
                             value->type.text()));
      }
      value->type = declared[i];
    }
  }

  void body_node(Scope& scope, const OpInfo& op, const std::vector<std::string>& results, int depth) {
    const bool plain = op.attrs_from_map && !in_.peek('"');
    const std::string first = plain ? std::string() : in_.quoted();
    const std::string second = in_.take_word("as") ? in_.quoted() : std::string();
    auto body = std::make_unique<Graph>();
    Scope inner{*body, {}};
    std::vector<Value*> operands;
    in_.need('(');
    while (!in_.peek(')')) {
      operands.push_back(body_operand(scope, inner));
      if (!in_.take(',')) break;
    }
    in_.need(')');
    std::shared_ptr<const void> attrs;
    in_.located(statement_, [&] { attrs = body_attributes(op, operands, *body); });
    const size_t statement = statement_;
    block(inner, "yield", depth + 1);
    statement_ = statement;
    if (body->outputs().size() != results.size()) {
      in_.stop(fmt::format("the body yields {} values for {} results", body->outputs().size(), results.size()));
    }
    const std::vector<TensorType> declared = types(results.size());
    std::vector<Source> sources = node_sources();
    std::vector<TensorType> given;
    Node* node = in_.located(statement_, [&] {
      given = body_result_types(op, attrs.get(), types_of(body->outputs()));
      return scope.graph.add_node(&op, attrs, std::move(operands), results.size(), std::move(sources), nullptr, given);
    });
    const bool composite = node->op == composite_op();
    node->label = composite ? first : second;
    node->pattern = composite ? second : first;
    node->body = std::move(body);
    for (size_t i = 0; i < declared.size(); ++i) {
      if (!(declared[i] == given[i]))
        in_.stop(
            fmt::format("{} is declared {} but the body gives {}", results[i], declared[i].text(), given[i].text()));
    }
    finish(scope, *node, results, {});
  }

  /// Reads what operators with attributes have between operands and body, and sets the types of the body's inputs.
  std::shared_ptr<const void> body_attributes(const OpInfo& op, const std::vector<Value*>& operands, Graph& body) {
    if (!op.attrs_from_map) return nullptr;
    std::shared_ptr<const void> attrs = op.attrs_from_map(attributes());
    const std::vector<TensorType> types = body_input_types(op, attrs.get(), types_of(operands));
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i]) body.inputs()[i]->type = types[i];
    return attrs;
  }

  Value* body_operand(const Scope& scope, Scope& inner) {
    const bool absent = in_.take('_');
    std::string ref = absent ? std::string() : in_.value_ref();
    Value* outer = absent ? nullptr : use(scope, ref);
    if (in_.take_word("as")) ref = in_.value_ref();
    if (ref.empty()) in_.expected("\"as\" after an absent operand of a body");
    TensorType inner_type;
    if (absent) {
      in_.need(':');
      inner_type = type();
    } else {
      inner_type = outer->type;
    }
    define(inner, ref, inner.graph.add_input({}, std::move(inner_type)));
    return outer;
  }

  std::vector<TensorType> types(size_t results) {
    std::vector<TensorType> out;
    if (!in_.take(':')) return out;
    if (in_.take('(')) {
      do out.push_back(type());
      while (in_.take(','));
      in_.need(')');
    } else {
      out.push_back(type());
    }
    if (out.size() != results) in_.stop(fmt::format("{} types for {} results", out.size(), results));
    return out;
  }

  std::vector<Source> node_sources() {
    std::vector<Source> out;
    while (in_.take('@')) {
      Source s;
      s.name = in_.quoted();
      if (in_.take('(')) {
        s.op_type = in_.identifier();
        if (in_.take(':')) {
          in_.need(':');
          s.domain = std::exchange(s.op_type, in_.identifier());
        }
        if (in_.take('@') && !read_exactly(in_.number(), s.opset)) in_.stop("an opset is an integer");
        in_.need(')');
      }
      out.push_back(std::move(s));
    }
    return out;
  }

  // ---- attributes

  AttrMap attributes() {
    AttrMap map;
    if (!in_.take('{')) return map;
    while (!in_.peek('}')) {
      std::string key = in_.word();
      if (key.empty()) in_.expected("an attribute name");
      if (find(map, key) != nullptr) in_.stop(fmt::format("attribute \"{}\" is given twice", key));
      in_.need('=');
      map.emplace_back(std::move(key), attribute_value());
      if (!in_.take(',')) break;
    }
    in_.need('}');
    return map;
  }

  AttrValue attribute_value() {
    if (in_.peek('"')) return in_.quoted();
    if (in_.take('[')) return attribute_list();
    in_.skip();
    const size_t here = in_.position();
    const std::string_view token = in_.number();
    int64_t integer = 0;
    double real = 0;
    if (read_exactly(token, integer)) return integer;
    if (read_exactly(token, real)) return real;
    if (token == "true" || token == "false") return token == "true";
    if (auto dtype = parse_dtype(token)) return *dtype;
    in_.rewind(here);
    in_.expected("an attribute value");
  }

  AttrValue attribute_list() {
    std::vector<int64_t> integers;
    std::vector<double> reals;
    std::vector<std::string> strings;
    while (!in_.peek(']')) {
      const AttrValue v = attribute_value();
      if (const int64_t* i = std::get_if<int64_t>(&v))
        integers.push_back(*i), reals.push_back(static_cast<double>(*i));
      else if (const double* d = std::get_if<double>(&v))
        reals.push_back(*d);
      else if (const std::string* s = std::get_if<std::string>(&v))
        strings.push_back(*s);
      else
        in_.stop("a list holds integers, reals or strings");
      if (!in_.take(',')) break;
    }
    in_.need(']');
    if (!strings.empty() && !reals.empty()) in_.stop("a list holds values of one type");
    if (!strings.empty()) return strings;
    if (integers.size() == reals.size()) return integers;
    return reals;
  }
};

}  // namespace

Graph parse_graph(std::string_view text, const OpRegistry& registry, const ParseOptions& options) {
  return GraphParser(text, registry, options).run();
}

Graph parse_graph(std::string_view text, const OpRegistry& registry) {
  return parse_graph(text, registry, ParseOptions{});
}

}  // namespace opfuse
