// Capabilities as a target's file has them: what `targets show` prints reads back.
#include <fmt/ranges.h>

#include <filesystem>

#include "target/capabilities.hpp"

namespace opfuse {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string list(const std::vector<PlacedText>& texts) {
  std::vector<std::string> words;
  for (const PlacedText& text : texts) words.push_back(quoted(text.text));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

struct Lines {
  std::string text, between = "\n";
  void put(const char* key, const std::string& value) { text += fmt::format("{} = {}{}", key, value, between); }
  void texts(const char* key, const std::vector<PlacedText>& values) {
    if (!values.empty()) put(key, list(values));
  }
  void word(const char* key, const PlacedText& value) {
    if (!value.text.empty()) put(key, quoted(value.text));
  }
  void number(const char* key, int64_t value, int64_t otherwise = 0) {
    if (value != otherwise) put(key, std::to_string(value));
  }
  void real(const char* key, double value) {
    if (value > 0) put(key, fmt::format("{}", value));
  }
};

std::string text_of(const FusionSlot& slot) {
  Lines row{.between = ", "};
  row.word("name", slot.name);
  row.texts("ops", slot.ops);
  row.texts("where", slot.where);
  row.number("most", slot.most, 1);
  if (slot.operand.text != "any") row.word("operand", slot.operand);
  row.text.resize(row.text.size() - 2);
  return "  {" + row.text + "},\n";
}

void put_slots(Lines& out, const char* key, const std::vector<FusionSlot>& slots) {
  if (slots.empty()) return;
  std::string all = "[\n";
  for (const FusionSlot& slot : slots) all += text_of(slot);
  out.put(key, all + "]");
}

void put(Lines& out, const OperatorRow& row) {
  out.text += "\n[[operator]]\n";
  out.word("name", row.name);
  out.texts("ops", row.ops);
  out.texts("where", row.where);
}

void put(Lines& out, const AnchorRow& row) {
  out.text += "\n[[anchor]]\n";
  out.word("name", row.name);
  out.texts("ops", row.ops);
  out.texts("where", row.where);
  put_slots(out, "prologue", row.prologue);
  put_slots(out, "epilogue", row.epilogue);
  out.number("most_prologue", row.most_prologue);
  out.number("most_epilogue", row.most_epilogue);
}

void put(Lines& out, const CompositeRow& row) {
  out.text += "\n[[composite]]\n";
  out.word("name", row.name);
  out.word("module", row.module);
  out.word("about", row.about);
  out.word("topology", row.topology);
  out.word("root", row.root);
  out.texts("where", row.where);
  out.texts("needs", row.needs);
  std::vector<std::string> points;
  for (const auto& [point, binding] : row.points)
    points.push_back(fmt::format("{} = {}", point.text, quoted(binding.text)));
  if (!points.empty()) out.put("points", fmt::format("{{ {} }}", fmt::join(points, ", ")));
  out.real("multiply_adds_per_second", row.multiply_adds_per_second);
  out.real("launch_seconds", row.launch_seconds);
  if (const Intrinsic& tile = row.intrinsic; tile.given())
    out.put("intrinsic", fmt::format("{{ source = {}, symbol = {}, tile = [{}, {}, {}] }}",
                                     quoted(std::filesystem::absolute(tile.path).string()), quoted(tile.symbol.text),
                                     tile.rows, tile.columns, tile.depth));
}

void put(Lines& out, const GroupLimits& limits) {
  if (!limits.any()) return;
  out.text += "\n[limits]\n";
  out.number("nodes", limits.nodes);
  out.number("operands", limits.operands);
  out.number("rank", limits.rank);
  out.number("elements", limits.elements);
  out.number("scratch_bytes", limits.scratch_bytes);
}

void put(Lines& out, const QuantizePreferences& q) {
  if (!q.stated) return;
  out.text += fmt::format("\n[quantize]\nactivations = {}\nweights = {}\nsymmetric = {}\nper_channel = {}\n",
                          quoted(q.activations), quoted(q.weights), q.symmetric, q.per_channel);
  out.text += fmt::format("depthwise_scales = {}\n", q.depthwise_scales);
  out.text += fmt::format("bias = {}\narithmetic = {}\nresults = {}\nequalize_anywhere = {}\n", quoted(q.bias),
                          quoted(q.arithmetic), q.results, q.equalize_anywhere);
  out.real("equalize_gain", q.equalize_gain);
  out.texts("keep_float", q.keep_float);
  out.texts("points", q.points);
  for (const LeaveRow& row : q.leave) {
    out.text += "\n[[quantize.leave]]\n";
    out.word("name", row.name);
    out.word("topology", row.topology);
    out.texts("where", row.where);
    out.word("why", row.why);
  }
}

void put(Lines& out, const DeviceCosts& d, const PlacedText& plugin) {
  if (d.bytes_per_second > 0) {
    out.text += "\n[device]\n";
    out.real("multiply_adds_per_second", d.multiply_adds_per_second);
    out.real("bytes_per_second", d.bytes_per_second);
    out.real("launch_seconds", d.launch_seconds);
  }
  if (d.transfer_bytes_per_second > 0) {
    out.text += "\n[transfer]\n";
    out.real("bytes_per_second", d.transfer_bytes_per_second);
    out.real("seconds", d.transfer_seconds);
  }
  if (!plugin.text.empty()) {
    out.text += "\n[plugin]\n";
    out.word("library", plugin);
  }
}

}  // namespace

std::string PlacedText::place() const { return fmt::format("{}:{}", file, line); }

bool Capabilities::any() const {
  return !operators.empty() || !anchors.empty() || !composites.empty() || limits.any() || quantize.stated;
}

std::string intrinsics_text(const Capabilities& capabilities) {
  std::string text;
  for (const CompositeRow& row : capabilities.composites)
    if (const Intrinsic& tile = row.intrinsic; tile.given())
      text += fmt::format("{} {}x{}x{} {}\n{}\n", tile.symbol.text, tile.rows, tile.columns, tile.depth,
                          tile.source.text, tile.bytes);
  return text;
}

std::string toml_of(const Capabilities& capabilities) {
  Lines out;
  put(out, capabilities.device, capabilities.plugin);
  for (const OperatorRow& row : capabilities.operators) put(out, row);
  for (const AnchorRow& row : capabilities.anchors) put(out, row);
  for (const CompositeRow& row : capabilities.composites) put(out, row);
  put(out, capabilities.limits);
  put(out, capabilities.quantize);
  return out.text;
}

}  // namespace opfuse
