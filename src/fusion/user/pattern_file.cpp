// TOML to records, records to patterns, and examples as tests.
#include "fusion/user/pattern_file.hpp"

#define TOML_ENABLE_FORMATTERS 0
#include <algorithm>
#include <map>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/mapped_file.hpp"
#include "base/toml.hpp"
#include "fusion/plan.hpp"
#include "fusion/user/condition_value.hpp"
#include "fusion/user/pattern_text.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"

namespace opfuse {

namespace {

TextPlace place_of(const toml::node& node, const std::string& file) {
  const auto begin = node.source().begin;
  return {file, begin.line, begin.column};
}

Error wrong(const TextPlace& at, const std::string& what) {
  return fail(E::bad_file, "{}:{}:{}: {}", at.file, at.line, at.column, what);
}

std::string text_of(const toml::node& node, const std::string& file, std::string_view key) {
  if (const auto text = node.value<std::string>(); text && node.is_string()) return *text;
  throw wrong(place_of(node, file), fmt::format("{} must be a text", key));
}

/// The text begins behind its opening quote.
PatternText::Part part_of(const toml::node& node, const std::string& file, std::string_view key) {
  PatternText::Part part{text_of(node, file, key), place_of(node, file)};
  ++part.at.column;
  return part;
}

const toml::array& list_of(const toml::node& node, const std::string& file, std::string_view key) {
  if (const toml::array* list = node.as_array()) return *list;
  throw wrong(place_of(node, file), fmt::format("{} must be a list of texts", key));
}

void read_points(const toml::node& node, const std::string& file, PatternText& text) {
  const toml::table* table = node.as_table();
  if (!table) throw wrong(place_of(node, file), "points must be a table such as { INPUT = \"conv\" }");
  for (const auto& [key, value] : *table)
    text.points.emplace_back(std::string(key.str()), text_of(value, file, key.str()));
}

int64_t number_of(const toml::node& node, const std::string& file, std::string_view key) {
  if (const auto number = node.value<int64_t>(); number && node.is_integer()) return *number;
  throw wrong(place_of(node, file), fmt::format("{} must be a whole number", key));
}

int checked_priority(int64_t priority, const TextPlace& at) {
  if (priority >= -kMostPriority && priority <= kMostPriority) return static_cast<int>(priority);
  throw wrong(at, fmt::format("priority {} is outside [-{}, {}]", priority, kMostPriority, kMostPriority));
}

void read_key(std::string_view key, const toml::node& value, const std::string& file, PatternText& text,
              std::vector<PatternExample>& examples) {
  static const std::vector<std::string> kKeys{"name", "module", "doc",      "topology", "where",
                                              "root", "points", "priority", "fires",    "spares"};
  if (key == "name" || key == "module" || key == "doc" || key == "root")
    (key == "name"     ? text.name
     : key == "module" ? text.module
     : key == "doc"    ? text.doc
                       : text.root) = text_of(value, file, key);
  else if (key == "topology")
    text.topology = part_of(value, file, key);
  else if (key == "where")
    for (const toml::node& condition : list_of(value, file, key)) text.where.push_back(part_of(condition, file, key));
  else if (key == "points")
    read_points(value, file, text);
  else if (key == "priority")
    text.priority = checked_priority(number_of(value, file, key), place_of(value, file));
  else if (key == "fires" || key == "spares")
    for (const toml::node& graph : list_of(value, file, key))
      examples.push_back({text_of(graph, file, key), key == "fires"});
  else
    throw wrong(place_of(value, file), fmt::format("\"{}\" is not a key of a pattern", key))
        .hint(did_you_mean(std::string(key), kKeys));
}

UserPattern read_pattern(const toml::table& table, const std::string& file) {
  PatternText text;
  UserPattern user;
  for (const auto& [key, value] : table) read_key(key.str(), value, file, text, user.examples);
  if (text.name.empty() || text.topology.text.empty())
    throw wrong(place_of(table, file), "a pattern needs a name and a topology");
  user.pattern = make_pattern(text);
  return user;
}

/// What stands before the first "__" of an instance's label is its module.
void check_module(const std::string& module, const TextPlace& at) {
  if (module.find("__") == std::string::npos && module.back() != '_') return;
  throw wrong(at, fmt::format("the module \"{}\" has \"__\" or ends in \"_\"", module))
      .hint("\"__\" separates the module from the instance in labels such as FusedConvBN__conv1");
}

}  // namespace

FusionPattern make_pattern(const PatternText& text) {
  FusionPattern pattern;
  pattern.name = text.name;
  pattern.module = text.module.empty() ? "Fused" + text.name : text.module;
  check_module(pattern.module, text.topology.at);
  pattern.doc = text.doc;
  pattern.priority = checked_priority(text.priority, text.topology.at);
  pattern.topology = parse_topology(text.topology.text, text.topology.at);
  std::vector<std::string> names;
  for (const Element* element : bindings_of(pattern.topology)) names.push_back(element->binding);
  const auto known = [&](const std::string& binding) {
    if (std::find(names.begin(), names.end(), binding) == names.end())
      throw wrong(text.topology.at, fmt::format("the topology of {} has no binding \"{}\"", text.name, binding))
          .hint(did_you_mean(binding, names));
    return binding;
  };
  if (names.empty())
    throw wrong(text.topology.at, fmt::format("the topology of {} binds nothing, as in conv:conv", text.name));
  pattern.root = text.root.empty() ? names.front() : known(text.root);
  for (const auto& [point, binding] : text.points)
    pattern.points.push_back({point, binding.empty() ? binding : known(binding)});
  for (const PatternText::Part& condition : text.where)
    pattern.where.push_back(parse_condition(condition.text, pattern.topology, condition.at));
  return pattern;
}

std::vector<UserPattern> parse_patterns(std::string_view toml_text, const std::string& file) {
  toml::table document;
  try {
    document = toml::parse(toml_text, file);
  } catch (const toml::parse_error& error) {
    const auto at = error.source().begin;
    throw wrong({file, at.line, at.column}, std::string(error.description()));
  }
  std::vector<UserPattern> patterns;
  for (const auto& [key, value] : document) {
    const toml::array* tables = value.as_array();
    if (key.str() != "pattern" || !tables)
      throw wrong(place_of(value, file), fmt::format("expected [[pattern]] tables, found \"{}\"", key.str()));
    for (const toml::node& table : *tables) {
      if (!table.is_table()) throw wrong(place_of(table, file), "expected a [[pattern]] table");
      patterns.push_back(read_pattern(*table.as_table(), file));
    }
  }
  if (patterns.empty()) throw wrong({file, 1, 1}, "the file has no [[pattern]]");
  return patterns;
}

std::vector<UserPattern> read_patterns(const std::string& path) {
  try {
    return parse_patterns(MappedFile::open(path, true)->bytes(), path);
  } catch (Error& error) {
    throw error.file(path);
  }
}

std::vector<FusionPattern> patterns_with(const std::vector<std::string>& files, const std::vector<PatternText>& own) {
  std::vector<FusionPattern> all;
  std::map<std::string, std::string> origins;  // by name: where the pattern comes from, for the refusal
  for (const FusionPattern& pattern : fusion_patterns()) origins[pattern.name] = "the catalogue";
  const auto add = [&](FusionPattern pattern, const std::string& file) {
    const auto [at, fresh] = origins.emplace(pattern.name, file.empty() ? "PlanRequest::patterns" : file);
    if (!fresh)
      throw fail(E::bad_option, "there are two patterns \"{}\"; the other one is from {}", pattern.name, at->second)
          .file(file)
          .hint("give this one another name: --only, --skip and plans choose patterns by name");
    all.push_back(std::move(pattern));
  };
  for (const PatternText& text : own) add(make_pattern(text), "");
  for (const std::string& file : files)
    for (const UserPattern& user : read_patterns(file)) add(user.pattern, file);
  all.insert(all.end(), fusion_patterns().begin(), fusion_patterns().end());
  return all;
}

std::string check_example(const FusionPattern& pattern, const PatternExample& example) {
  Graph graph = parse_graph(example.graph, ops());
  run_passes(graph, preparing_passes());
  const std::vector<FusionPattern> alone{pattern};
  PlanOptions options;
  options.patterns = &alone;
  options.rules = false;
  const FusionPlan plan = make_plan(graph, options);
  if (plan.applied().empty() == !example.fires) {
    if (!example.fires) return {};
    const Graph fused = apply(graph, plan);
    const SymbolValues symbols = [&] {
      SymbolValues values;
      for (const std::string& name : graph.symbols()) values[name] = 2;
      return values;
    }();
    const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 1, .symbols = symbols});
    const auto want = interpret(graph, inputs, {.symbols = symbols}),
               got = interpret(fused, inputs, {.symbols = symbols});
    for (size_t i = 0; i < want.size(); ++i)
      if (!got[i].same_bits(want[i])) return fmt::format("output {} changes", i);
    return {};
  }
  if (!example.fires) return "it fires, but is listed under spares";
  const Matcher matcher(graph);
  std::string best = "it does not fire";
  size_t matched = 0;
  for (Node* node : graph.nodes()) {
    const MatchResult r = matcher.match(pattern.topology, node, pattern.where);
    if (r || r.partial.matched < matched) continue;
    matched = r.partial.matched;
    best = fmt::format("it does not fire: {} ({} of {} nodes matched at {})", r.partial.decline.message, matched,
                       r.partial.of, describe(*node));
  }
  return best;
}

}  // namespace opfuse
