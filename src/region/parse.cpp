// Reads what print.cpp writes. Line based: the first word of a line says what the line is. Every error
// is E::bad_text with its line number.
#include <charconv>

#include "base/fail.hpp"
#include "region/names.hpp"

namespace opfuse {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

/// Splits at `separator` outside of brackets and backquotes.
std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '`') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0 && text.substr(i, separator.size()) == separator) {
      parts.push_back(trim(text.substr(start, i - start)));
      start = i + separator.size();
      i = start - 1;
    }
  }
  parts.push_back(trim(text.substr(start)));
  return parts;
}

struct Line {
  std::string_view rest;
  size_t number = 0;

  Error bad(std::string_view what) const {
    return fail(E::bad_text, "line {} of a region: {} (at \"{}\")", number, what, rest.substr(0, 60));
  }
  std::string_view word() {
    rest = trim(rest);
    const size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view head = rest.substr(0, end);
    rest = trim(rest.substr(end));
    return head;
  }
  void expect(std::string_view what) {
    if (word() != what) throw bad(fmt::format("expected '{}'", what));
  }
  int number_of(std::string_view text) const {
    int value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) throw bad("expected a number");
    return value;
  }
  template <class Enum, size_t N>
  Enum name_in(const std::array<std::string_view, N>& names) {
    const std::string_view name = word();
    for (size_t i = 0; i < N; ++i)
      if (names[i] == name) return static_cast<Enum>(i);
    throw bad(fmt::format("unknown word '{}'", name));
  }
  Dim dim_of(std::string_view text) const {
    text = trim(text);
    if (text.size() >= 2 && text.front() == '{' && text.back() == '}')
      return Dim::parse(text.substr(1, text.size() - 2));
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) throw bad("expected a number or {expression}");
    return Dim(value);
  }

  IndexTerm term_of(std::string_view text) const {
    IndexTerm term;
    const auto factors = split(text, "*");
    if (factors.size() > 2) throw bad("expected coef*axis");
    if (factors.size() == 2) term.coef = dim_of(factors[0]);
    const auto modulo = split(factors.back(), "%");
    if (modulo.size() == 2) term.mod = dim_of(modulo[1]);
    const auto quotient = split(modulo[0], "/");
    if (quotient.size() == 2) term.div = dim_of(quotient[1]);
    if (quotient[0].size() < 2 || quotient[0][0] != 'a') throw bad("expected an axis such as a0");
    term.axis = number_of(quotient[0].substr(1));
    return term;
  }

  IndexExpr index_of(std::string_view text) const {
    IndexExpr index;
    if (text.size() >= 2 && text.front() == '`' && text.back() == '`') {
      index.dynamic = Expr::parse(text.substr(1, text.size() - 2));
      return index;
    }
    for (std::string_view part : split(text, " + ")) {
      const auto factors = split(part, "*");
      if (!factors.back().empty() && factors.back()[0] == 'a')
        index.terms.push_back(term_of(part));
      else
        index.offset = dim_of(part);
    }
    return index;
  }

  /// "[a0, 2*a1 + 3]" at the start of the line.
  IndexMap map() {
    rest = trim(rest);
    bool quoted = false;
    int depth = 0;
    size_t end = 0;
    for (; end < rest.size(); ++end) {
      const char c = rest[end];
      if (c == '`') quoted = !quoted;
      if (quoted) continue;
      if (c == '[') ++depth;
      if (c == ']' && --depth == 0) break;
    }
    if (rest.empty() || rest[0] != '[' || end >= rest.size()) throw bad("expected an index map in brackets");
    const std::string_view inside = trim(rest.substr(1, end - 1));
    rest = trim(rest.substr(end + 1));
    IndexMap map;
    if (!inside.empty())
      for (std::string_view part : split(inside, ",")) map.dims.push_back(index_of(part));
    return map;
  }

  /// "f32[1,(h + 1) / 2]": up to the closing bracket.
  TensorType type() {
    rest = trim(rest);
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) throw bad("expected a type such as f32[1,3]");
    const TensorType type = parse_type(rest.substr(0, end + 1));
    rest = trim(rest.substr(end + 1));
    return type;
  }
  std::vector<Dim> extents() { return parse_type("f32" + std::string(trim(rest))).shape.dims; }
};

void parse_read(Line& line, Stage& stage) {
  Read read;
  const std::string_view kind = line.word();
  const std::string_view which = line.word();
  if (kind == "param") {
    read.index = line.number_of(which);
  } else if (kind == "stage") {
    const size_t dot = which.find('.');
    if (dot == std::string_view::npos) throw line.bad("expected stage.output");
    read.stage = line.number_of(which.substr(0, dot));
    read.index = line.number_of(which.substr(dot + 1));
  } else {
    throw line.bad("expected 'param' or 'stage'");
  }
  line.expect("at");
  read.map = line.map();
  stage.reads.push_back(std::move(read));
}

void parse_output(Line& line, Stage& stage) {
  StageOutput output;
  const std::string_view kind = line.word();
  if (kind == "param")
    output.param = line.number_of(line.word());
  else if (kind != "local")
    throw line.bad("expected 'param' or 'local'");
  const TensorType type = line.type();
  output.dtype = type.dtype;
  output.shape = type.shape;
  line.expect("at");
  output.map = line.map();
  output.clipped = line.rest.starts_with("clipped");
  if (output.clipped) line.word();
  if (!line.rest.starts_with("=")) output.combine = line.name_in<ReduceKind>(kReduceNames);
  line.expect("=");
  output.value = Expr::parse(line.rest);
  stage.outputs.push_back(std::move(output));
}

void parse_line(Line& line, Region& region) {
  const std::string_view what = line.word();
  if (what == "param") {
    Param param;
    param.role = line.name_in<ParamRole>(kRoleNames);
    param.type = line.type();
    region.params.push_back(std::move(param));
    return;
  }
  if (what == "stage") {
    region.stages.emplace_back().anchor = line.name_in<Anchor>(kAnchorNames);
    return;
  }
  if (region.stages.empty()) throw line.bad("expected 'param' or 'stage'");
  Stage& stage = region.stages.back();
  if (what == "domain") {
    stage.domain = line.extents();
  } else if (what == "reduce") {
    stage.reduce = line.extents();
  } else if (what == "read") {
    parse_read(line, stage);
  } else if (what == "reduction") {
    Reduction reduction;
    reduction.kind = line.name_in<ReduceKind>(kReduceNames);
    reduction.value = Expr::parse(line.rest);
    stage.reductions.push_back(std::move(reduction));
  } else if (what == "output") {
    parse_output(line, stage);
  } else {
    throw line.bad(fmt::format("unknown word '{}'", what));
  }
}

}  // namespace

Region parse_region(std::string_view text) {
  Region region;
  size_t number = 0;
  bool opened = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    Line line{trim(text.substr(0, end)), ++number};
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.rest.empty()) continue;
    if (!opened) {
      line.expect("region");
      opened = true;
      continue;
    }
    parse_line(line, region);
  }
  if (!opened) throw fail(E::bad_text, "a region's text starts with the line 'region'");
  return region;
}

}  // namespace opfuse
