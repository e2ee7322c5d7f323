// TOML tables to rows. A row is read key by key: what is known is taken, what is left over is a mistake with a near
// name. Rows are added to those of what the file extends; a row of the same name takes the place of the other.
#include "target/capability_reader.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/did_you_mean.hpp"
#include "base/file_bytes.hpp"

namespace opfuse {
namespace {

constexpr int64_t kMostTimes = 4096;
constexpr double kMostRate = 1e18;

/// One table of the file; every key that is asked for is known, the others are mistakes.
class Row {
 public:
  Row(const toml::table& table, std::string what, const std::string& file, const MistakeSink& wrong)
      : table_(table), what_(std::move(what)), file_(file), wrong_(wrong) {}

  void text(const char* key, PlacedText& into) {
    if (const toml::node* node = find(key)) into = placed(*node, key).value_or(PlacedText{});
  }
  void word(const char* key, std::string& into) {
    PlacedText text{into};
    this->text(key, text);
    into = text.text;
  }
  void texts(const char* key, std::vector<PlacedText>& into) {
    const toml::node* node = find(key);
    if (!node) return;
    const toml::array* list = node->as_array();
    if (!list) return wrong_(node->source(), fmt::format("{} must be a list of texts", key), "");
    for (const toml::node& item : *list)
      if (auto text = placed(item, key)) into.push_back(std::move(*text));
  }
  void number(const char* key, int64_t& into, int64_t least, int64_t most) {
    const toml::node* node = find(key);
    if (!node) return;
    const std::optional<int64_t> value = node->is_integer() ? node->value<int64_t>() : std::nullopt;
    if (!value) return wrong_(node->source(), fmt::format("{} must be a whole number", key), "");
    if (*value < least || *value > most)
      return wrong_(node->source(), fmt::format("{} = {} is outside [{}, {}]", key, *value, least, most), "");
    into = *value;
  }
  void real(const char* key, double& into, double most) {
    const toml::node* node = find(key);
    if (!node) return;
    const std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value) return wrong_(node->source(), fmt::format("{} must be a number", key), "");
    if (!(*value > 0 && *value <= most))
      return wrong_(node->source(), fmt::format("{} = {} is outside (0, {}]", key, *value, most), "");
    into = *value;
  }
  void flag(const char* key, bool& into) {
    const toml::node* node = find(key);
    if (!node) return;
    if (!node->is_boolean()) return wrong_(node->source(), fmt::format("{} must be true or false", key), "");
    into = *node->value<bool>();
  }
  void pairs(const char* key, std::vector<std::pair<PlacedText, PlacedText>>& into) {
    const toml::node* node = find(key);
    if (!node) return;
    const toml::table* table = node->as_table();
    if (!table) return wrong_(node->source(), fmt::format("{} must be a table of texts", key), "");
    for (const auto& [name, value] : *table)
      if (auto text = placed(value, key))
        into.emplace_back(PlacedText{std::string(name.str()), file_, text->line, text->column}, std::move(*text));
  }
  template <class Read>
  void rows(const char* key, Read read) {
    const toml::node* node = find(key);
    if (!node) return;
    const toml::array* list = node->as_array();
    if (!list) return wrong_(node->source(), fmt::format("{} must be a list of tables", key), "");
    for (const toml::node& item : *list) {
      if (const toml::table* table = item.as_table())
        read(*table);
      else
        wrong_(item.source(), fmt::format("{} must be a list of tables", key), "");
    }
  }
  template <class Read>
  void table(const char* key, Read read) {
    const toml::node* node = find(key);
    if (!node) return;
    if (const toml::table* table = node->as_table()) return read(*table);
    wrong_(node->source(), fmt::format("{} must be a table", key), "");
  }
  /// So many whole numbers as there are places for.
  void numbers(const char* key, std::vector<int64_t*> into, int64_t least, int64_t most) {
    const toml::node* node = find(key);
    if (!node) return;
    const toml::array* list = node->as_array();
    if (!list || list->empty() || list->size() > into.size())
      return wrong_(node->source(), fmt::format("{} must be a list of up to {} numbers", key, into.size()), "");
    for (size_t i = 0; i < list->size(); ++i) {
      const std::optional<int64_t> value = list->get(i)->is_integer() ? list->get(i)->value<int64_t>() : std::nullopt;
      if (!value || *value < least || *value > most)
        return wrong_(list->get(i)->source(), fmt::format("{} has numbers from {} to {}", key, least, most), "");
      *into[i] = *value;
    }
  }
  /// What nobody asked for.
  void finish() {
    for (const auto& [key, value] : table_)
      if (std::find(known_.begin(), known_.end(), key.str()) == known_.end())
        wrong_(value.source(), fmt::format("{} has no field \"{}\"", what_, key.str()),
               did_you_mean(std::string(key.str()), known_));
  }
  /// A row without a name still has a place.
  void name(PlacedText& into) {
    text("name", into);
    if (into.text.empty()) into = at(table_, "");
  }
  void needs(const char* key, bool there) {
    if (!there && !find(key)) wrong_(table_.source(), fmt::format("{} lacks {}", what_, key), "");
  }

 private:
  const toml::table& table_;
  std::string what_;
  const std::string& file_;
  const MistakeSink& wrong_;
  std::vector<std::string> known_;

  const toml::node* find(const char* key) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
    return table_.get(key);
  }
  PlacedText at(const toml::node& node, std::string text) const {
    const auto begin = node.source().begin;
    return {std::move(text), file_, std::max<size_t>(begin.line, 1), std::max<size_t>(begin.column, 1)};
  }
  /// The text begins behind its opening quote.
  std::optional<PlacedText> placed(const toml::node& node, const char* key) const {
    if (!node.is_string()) {
      wrong_(node.source(), fmt::format("{} must be a text", key), "");
      return std::nullopt;
    }
    PlacedText text = at(node, *node.value<std::string>());
    ++text.column;
    return text;
  }
};

template <class T>
void add_row(std::vector<T>& rows, T row) {
  const auto same = [&](const T& other) { return !row.name.text.empty() && other.name.text == row.name.text; };
  const auto old = std::find_if(rows.begin(), rows.end(), same);
  if (old != rows.end())
    *old = std::move(row);
  else
    rows.push_back(std::move(row));
}

class Sections {
 public:
  Sections(const std::string& file, Capabilities& into, const MistakeSink& wrong)
      : file_(file), into_(into), wrong_(wrong) {}

  void operators(const toml::table& table) {
    Row row(table, "[[operator]]", file_, wrong_);
    OperatorRow one;
    row.name(one.name);
    row.texts("ops", one.ops);
    row.texts("where", one.where);
    row.needs("ops", false);
    row.finish();
    add_row(into_.operators, std::move(one));
  }

  void anchor(const toml::table& table) {
    Row row(table, "[[anchor]]", file_, wrong_);
    AnchorRow one;
    row.name(one.name);
    row.texts("ops", one.ops);
    row.texts("where", one.where);
    row.rows("prologue", [&](const toml::table& t) { one.prologue.push_back(slot(t, "a prologue")); });
    row.rows("epilogue", [&](const toml::table& t) { one.epilogue.push_back(slot(t, "an epilogue")); });
    row.number("most_prologue", one.most_prologue, 1, kMostTimes);
    row.number("most_epilogue", one.most_epilogue, 1, kMostTimes);
    row.needs("ops", false);
    row.finish();
    add_row(into_.anchors, std::move(one));
  }

  void composite(const toml::table& table) {
    Row row(table, "[[composite]]", file_, wrong_);
    CompositeRow one;
    row.name(one.name);
    row.text("module", one.module);
    row.text("about", one.about);
    row.text("topology", one.topology);
    row.text("root", one.root);
    row.texts("where", one.where);
    row.texts("needs", one.needs);
    row.pairs("points", one.points);
    row.real("multiply_adds_per_second", one.multiply_adds_per_second, kMostRate);
    row.real("launch_seconds", one.launch_seconds, 1);
    row.table("intrinsic", [&](const toml::table& t) { intrinsic(t, one.intrinsic); });
    row.needs("name", false);
    row.needs("topology", false);
    row.finish();
    add_row(into_.composites, std::move(one));
  }

  void limits(const toml::table& table) {
    Row row(table, "[limits]", file_, wrong_);
    constexpr int64_t kMost = int64_t{1} << 48;
    row.number("nodes", into_.limits.nodes, 1, kMost);
    row.number("operands", into_.limits.operands, 1, kMost);
    row.number("rank", into_.limits.rank, 1, 64);
    row.number("elements", into_.limits.elements, 1, kMost);
    row.number("scratch_bytes", into_.limits.scratch_bytes, 1, kMost);
    row.finish();
  }

  void quantize(const toml::table& table) {
    Row row(table, "[quantize]", file_, wrong_);
    QuantizePreferences& q = into_.quantize;
    q.stated = true;
    row.word("activations", q.activations);
    row.word("weights", q.weights);
    static const std::vector<std::string> kTypes{"int4", "int8", "uint8", "int16", "uint16", "fp8", "none"};
    std::vector<std::string> of_data = kTypes;
    of_data.emplace_back("by_sign");
    check_choice(table, "activations", q.activations, of_data);
    check_choice(table, "weights", q.weights, kTypes);
    row.flag("symmetric", q.symmetric);
    row.flag("per_channel", q.per_channel);
    row.flag("depthwise_scales", q.depthwise_scales);
    row.flag("results", q.results);
    row.flag("equalize_anywhere", q.equalize_anywhere);
    row.real("equalize_gain", q.equalize_gain, 100);
    row.word("bias", q.bias);
    row.word("arithmetic", q.arithmetic);
    check_choice(table, "bias", q.bias, {"float", "int32"});
    check_choice(table, "arithmetic", q.arithmetic, {"float", "int8", "int16_pairs"});
    std::vector<PlacedText> kept;
    row.texts("keep_float", kept);
    if (table.contains("keep_float")) q.keep_float = std::move(kept);
    std::vector<PlacedText> points;
    row.texts("points", points);
    if (!points.empty()) q.points = std::move(points);
    row.rows("leave", [&](const toml::table& t) { leave(t); });
    row.finish();
  }

  void device(const toml::table& table) {
    Row row(table, "[device]", file_, wrong_);
    row.real("multiply_adds_per_second", into_.device.multiply_adds_per_second, kMostRate);
    row.real("bytes_per_second", into_.device.bytes_per_second, kMostRate);
    row.real("launch_seconds", into_.device.launch_seconds, 1);
    row.finish();
  }

  void transfer(const toml::table& table) {
    Row row(table, "[transfer]", file_, wrong_);
    row.real("bytes_per_second", into_.device.transfer_bytes_per_second, kMostRate);
    row.real("seconds", into_.device.transfer_seconds, 1);
    row.finish();
  }

  void plugin(const toml::table& table) {
    Row row(table, "[plugin]", file_, wrong_);
    row.text("library", into_.plugin);
    row.needs("library", false);
    row.finish();
  }

 private:
  const std::string& file_;
  Capabilities& into_;
  const MistakeSink& wrong_;

  void check_choice(const toml::table& table, const char* key, const std::string& word,
                    const std::vector<std::string>& words) {
    if (std::find(words.begin(), words.end(), word) == words.end())
      wrong_(table.get(key)->source(), fmt::format("{} cannot be \"{}\"", key, word), did_you_mean(word, words));
  }

  /// The function's file is read at once: targets are told apart by it.
  void intrinsic(const toml::table& table, Intrinsic& into) {
    constexpr int64_t kMostSide = 256;
    Row row(table, "intrinsic", file_, wrong_);
    row.text("source", into.source);
    row.text("symbol", into.symbol);
    row.numbers("tile", {&into.rows, &into.columns, &into.depth}, 1, kMostSide);
    for (const char* key : {"source", "symbol", "tile"}) row.needs(key, false);
    row.finish();
    if (into.source.text.empty()) return;
    const std::vector<std::string> kinds{".c", ".ll", ".o", ".a"};
    const std::filesystem::path path = std::filesystem::path(file_).parent_path() / into.source.text;
    into.path = path.string();
    if (std::find(kinds.begin(), kinds.end(), path.extension()) == kinds.end())
      return wrong_(table.get("source")->source(),
                    fmt::format("source is C, LLVM IR, an object or an archive ({}), not \"{}\"",
                                fmt::join(kinds, ", "), into.source.text),
                    path.extension() == ".so" ? "kernels hold their code: give the archive or the object" : "");
    auto bytes = file_bytes(path);
    if (!bytes) return wrong_(table.get("source")->source(), fmt::format("cannot open {}", into.path), "");
    into.bytes = *std::move(bytes);
  }

  FusionSlot slot(const toml::table& table, const char* what) {
    Row row(table, what, file_, wrong_);
    FusionSlot one;
    one.operand.text = "any";
    row.name(one.name);
    row.texts("ops", one.ops);
    row.texts("where", one.where);
    row.number("most", one.most, 1, kMostTimes);
    row.text("operand", one.operand);
    row.needs("ops", false);
    const std::vector<std::string> kinds{"none", "whole", "any"};
    if (std::find(kinds.begin(), kinds.end(), one.operand.text) == kinds.end())
      wrong_(table.get("operand")->source(), fmt::format("operand is none, whole or any, not \"{}\"", one.operand.text),
             did_you_mean(one.operand.text, kinds));
    row.finish();
    return one;
  }

  void leave(const toml::table& table) {
    Row row(table, "[[quantize.leave]]", file_, wrong_);
    LeaveRow one;
    row.name(one.name);
    row.text("topology", one.topology);
    row.text("why", one.why);
    row.texts("where", one.where);
    row.needs("topology", false);
    row.finish();
    add_row(into_.quantize.leave, std::move(one));
  }
};

}  // namespace

const std::vector<std::string>& capability_sections() {
  static const std::vector<std::string> names{"operator", "anchor", "composite", "limits",
                                              "quantize", "device", "transfer",  "plugin"};
  return names;
}

void read_capabilities(const std::string& section, const toml::node& node, const std::string& file, Capabilities& into,
                       const MistakeSink& wrong) {
  using Read = void (Sections::*)(const toml::table&);
  static const std::map<std::string, Read> kTables = {{"limits", &Sections::limits},
                                                      {"quantize", &Sections::quantize},
                                                      {"device", &Sections::device},
                                                      {"transfer", &Sections::transfer},
                                                      {"plugin", &Sections::plugin}};
  Sections sections(file, into, wrong);
  if (const auto at = kTables.find(section); at != kTables.end()) {
    const toml::table* table = node.as_table();
    if (!table) return wrong(node.source(), fmt::format("{} must be a section: [{}]", section, section), "");
    return (sections.*at->second)(*table);
  }
  const toml::array* rows = node.as_array();
  if (!rows) return wrong(node.source(), fmt::format("{} must be rows: [[{}]]", section, section), "");
  for (const toml::node& item : *rows) {
    const toml::table* table = item.as_table();
    if (!table)
      wrong(item.source(), fmt::format("{} must be rows: [[{}]]", section, section), "");
    else if (section == "operator")
      sections.operators(*table);
    else if (section == "anchor")
      sections.anchor(*table);
    else
      sections.composite(*table);
  }
}

}  // namespace opfuse
