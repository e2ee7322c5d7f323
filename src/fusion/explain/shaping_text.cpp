// A table of words for passes that join pairs, a function for each of the others. Lines come in the order of the
// passes.
#include "fusion/explain/shaping_text.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/fail.hpp"
#include "shape/shaping_passes.hpp"

namespace opfuse {
namespace {

/// How reports say it: of one pair, of several, and what is spared.
struct Wording {
  const char *pass, *kind, *one, *several, *spared;
};
constexpr Wording kWordings[] = {
    {"add-in-parts", "terms", "added where the tokens are made",
     "tables added to concatenated tokens are added where the tokens are made", "are not read again"},
    {"join-chains", "chain", "one launch", "pairs of a convolution and a depthwise one run as chains",
     "between them stay in caches"},
    {"join-gates", "gate", "one launch", "gated MLPs run their two products as one", "between them are never stored"},
    {"join-means", "means", "summed while the map is made", "means of planes are summed while their map is made",
     "are not read again"},
    {"join-norms", "norm", "one launch", "depthwise convolutions run with the LayerNorm behind them",
     "between them are never stored"},
    {"join-channel-factors", "factor", "a factor of the weights",
     "factors of channels are factors of the next convolution's weights", "are neither stored nor read again"}};

const Wording* wording_of(const ShapeVerdict& verdict) {
  const auto at = std::find_if(std::begin(kWordings), std::end(kWordings),
                               [&](const Wording& words) { return verdict.pass == words.pass; });
  return at == std::end(kWordings) ? nullptr : &*at;
}

const Wording& need_wording(const ShapeVerdict& verdict) {
  if (const Wording* words = wording_of(verdict)) return *words;
  throw fail(E::internal, "a verdict of {} is none of a pair", verdict.pass);
}

double megabytes(int64_t bytes) { return 1e-6 * static_cast<double>(bytes); }

using Lines = std::vector<std::string>;
using Verdicts = std::vector<ShapeVerdict>;

std::string plural(size_t count) { return count == 1 ? "" : "s"; }

Lines siblings(const Verdicts& verdicts) {
  Lines lines;
  size_t products = 0, linears = 0;
  for (const ShapeVerdict& v : verdicts)
    if (!v.refused) ++products, linears += v.nodes.size();
  if (products > 0)
    lines.push_back(
        fmt::format("{} Linears of common operands run as {} product{}", linears, products, plural(products)));
  for (const ShapeVerdict& v : verdicts)
    if (v.refused)
      lines.push_back(fmt::format("Linear{} {} of \"{}\" not merged with siblings, {}: {}", plural(v.nodes.size()),
                                  fmt::join(v.nodes, ", "), v.value, v.refused->code, v.refused->message));
  return lines;
}

Lines halves(const Verdicts& verdicts) {
  Lines lines;
  for (const ShapeVerdict& v : verdicts)
    lines.push_back(
        v.refused ? fmt::format("16-bit values are computed as they are, {}: {}", v.refused->code, v.refused->message)
                  : fmt::format("{} is computed and kept in f32: {} values, {} converted at the graph's edges, "
                                "constants {:.2f} MB larger",
                                v.subject, v.number("values"), v.number("casts"), megabytes(v.number("bytes"))));
  return lines;
}

std::string precision_line(const Verdicts& verdicts, const char* precision, const char* of) {
  std::map<std::string, int> floats;
  int done = 0;
  for (const ShapeVerdict& v : verdicts) ++(v.refused ? floats[v.refused->code] : done);
  std::string line = fmt::format("{} in {} of {} {}products", precision, done, verdicts.size(), of);
  for (const auto& [code, count] : floats) line += fmt::format(", f32 in {} ({})", count, code);
  return line;
}

Lines precisions(const Verdicts& verdicts) {
  if (verdicts.empty()) return {};
  return {precision_line(verdicts, "int8", "quantised ")};
}

Lines narrowed(const Verdicts& verdicts) {
  if (verdicts.empty()) return {};
  const int64_t casts = verdicts.front().number("casts");
  const std::string& type = verdicts.front().subject;
  std::string line = precision_line(verdicts, type.empty() ? "bf16" : type.c_str(), "");
  if (casts > 0)
    line += fmt::format("; {} launch{} only convert{}", casts, casts == 1 ? "" : "es", casts == 1 ? "s" : "");
  return {line};
}

Lines maps(const Verdicts& verdicts) {
  const auto count = std::count_if(verdicts.begin(), verdicts.end(), [](const auto& v) { return !v.refused; });
  if (count == 0) return {};
  const ShapeVerdict& last = verdicts.back();
  return {fmt::format(
      "{} image{} in {} for the least memory, rounded when stored: {:.2f} MB at the peak instead of {:.2f}", count,
      count == 1 ? " lies" : "s lie", last.subject, megabytes(last.number("bytes")), megabytes(last.number("before")))};
}

Lines streams(const Verdicts& verdicts) {
  int64_t count = 0;
  for (const ShapeVerdict& v : verdicts) count += v.number("streams");
  if (count == 0) return {};
  return {fmt::format("{} image{} that products pass on, residual streams too, lie{} in their type alone", count,
                      count == 1 ? "" : "s", count == 1 ? "s" : "")};
}

Lines weights(const Verdicts& verdicts) {
  if (verdicts.empty()) return {};
  std::map<std::string, int> floats;
  int done = 0;
  int64_t saved = 0;
  for (const ShapeVerdict& v : verdicts) ++(v.refused ? floats[v.refused->code] : done), saved += v.number("bytes");
  std::string line = fmt::format("weights in 16 bits in {} of {} groups, widened in registers: {:.2f} MB less", done,
                                 verdicts.size(), megabytes(saved));
  for (const auto& [code, count] : floats) line += fmt::format(", f32 in {} ({})", count, code);
  return {line};
}

Lines codes(const Verdicts& verdicts) {
  if (verdicts.empty()) return {};
  std::map<std::string, int> floats;
  int done = 0;
  int64_t saved = 0;
  for (const ShapeVerdict& v : verdicts) ++(v.refused ? floats[v.refused->code] : done), saved += v.number("bytes");
  std::string line = fmt::format("weights stay codes in {} of {} groups, decoded by their kernels: {:.2f} MB less",
                                 done, verdicts.size(), megabytes(saved));
  for (const auto& [code, count] : floats) line += fmt::format(", f32 in {} ({})", count, code);
  return {line};
}

Lines movements(const Verdicts& verdicts) {
  Lines lines;
  const auto tell = [&](const char* subject, const char* one, const char* several, const char* does) {
    int64_t groups = 0, movements = 0;
    for (const ShapeVerdict& v : verdicts)
      if (v.subject == subject) ++groups, movements += v.number("movements");
    if (groups > 0)
      lines.push_back(
          fmt::format("{} {} {} {} movements of elements", groups, groups == 1 ? one : several, does, movements));
  };
  tell("attention", "attention group", "attention groups", "read and store through");
  tell("rotary_embedding", "rotary embedding", "rotary embeddings", "read through");
  return lines;
}

Lines operands_as_codes(const Verdicts& verdicts) {
  if (verdicts.empty()) return {};
  int64_t operands = 0;
  for (const ShapeVerdict& v : verdicts) operands += v.number("operands");
  return {fmt::format("{} attention group{} read {} operand{} as codes", verdicts.size(), plural(verdicts.size()),
                      operands, plural(static_cast<size_t>(operands)))};
}

Lines images(const Verdicts& verdicts) {
  Lines lines;
  for (const ShapeVerdict& v : verdicts) {
    const double largest = megabytes(v.number("bytes"));
    lines.push_back(
        fmt::format("{} groups run image by image: maps of at most {:.2f} MB between them instead of {:.2f}",
                    v.nodes.size(), largest / static_cast<double>(v.number("images")), largest));
  }
  return lines;
}

Lines pairs(const Verdicts& verdicts) {
  int64_t bytes = 0, joined = 0;
  for (const ShapeVerdict& v : verdicts)
    if (!v.refused) bytes += v.number("bytes"), ++joined;
  if (joined == 0) return {};
  const Wording& words = need_wording(verdicts.front());
  return {
      fmt::format("{} of {} {}: {:.2f} MB {}", joined, verdicts.size(), words.several, megabytes(bytes), words.spared)};
}

Lines slices(const Verdicts& verdicts) {
  Lines lines;
  for (const ShapeVerdict& v : verdicts) {
    const double whole = megabytes(v.number("bytes"));
    const int64_t count = v.number("slices");
    lines.push_back(fmt::format("{} and {} run in {} slices of {} channels: {:.2f} MB between them instead of {:.2f}",
                                v.nodes[0], v.nodes[1], count, v.number("channels"), whole / static_cast<double>(count),
                                whole));
  }
  return lines;
}

/// Passes that join no pairs.
struct Teller {
  const char* pass;
  Lines (*lines)(const Verdicts&);
};
constexpr Teller kTellers[] = {
    {"widen-halves", halves},        {"sum-codes", precisions},    {"merge-siblings", siblings},
    {"absorb-movements", movements}, {"loop-over-images", images}, {"narrow-maps", maps},
    {"run-in-slices", slices},       {"narrow-factors", narrowed}, {"narrow-streams", streams},
    {"pack-codes", codes},           {"narrow-weights", weights},  {"codes-to-attention", operands_as_codes}};

Lines lines_of(const std::string& pass, const Verdicts& verdicts) {
  for (const Teller& teller : kTellers)
    if (pass == teller.pass) return teller.lines(verdicts);
  return pairs(verdicts);
}

}  // namespace

std::vector<ShapeVerdict> pairs_of(const std::vector<ShapeVerdict>& verdicts) {
  std::vector<ShapeVerdict> pairs;
  std::copy_if(verdicts.begin(), verdicts.end(), std::back_inserter(pairs), wording_of);
  return pairs;
}

std::string kind_of(const ShapeVerdict& pair) { return need_wording(pair).kind; }

std::string sentence_of(const ShapeVerdict& pair) {
  if (pair.refused) return fmt::format("two launches, {}: {}", pair.refused->code, pair.refused->message);
  const Wording& words = need_wording(pair);
  return fmt::format("{}, {:.2f} MB {}", words.one, megabytes(pair.number("bytes")), words.spared);
}

std::vector<std::string> shaping_lines(const std::vector<ShapeVerdict>& verdicts) {
  Lines all;
  for (const ShapingPass& pass : shaping_passes()) {
    const Lines lines = lines_of(pass.name, of_pass(verdicts, pass.name));
    all.insert(all.end(), lines.begin(), lines.end());
  }
  return all;
}

}  // namespace opfuse
