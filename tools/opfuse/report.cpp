// stdout is data, stderr is talk.
#include "report.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "base/file_bytes.hpp"
#include "base/read_files.hpp"
#include "opfuse/opfuse.hpp"
#include "talk.hpp"

namespace opfuse::cli {

std::string json_text(const Json& document, int indent) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void print_json(const Json& document) { fmt::print("{}\n", json_text(document, 2)); }

Json document(const std::string& schema) { return {{"schema", schema}, {"opfuse", version()}}; }

void warn(const std::string& text) { tell("warning: " + text + "\n"); }
void note(const std::string& text) { say("note: " + text); }

Json json_of(const Summary& s) {
  return {{"min", s.min}, {"median", s.median}, {"p90", s.p90}, {"p95", s.p95},
          {"p99", s.p99}, {"mean", s.mean},     {"cv", s.cv},   {"count", s.count}};
}

Json json_of(const Interval& i) { return {{"low", i.low}, {"estimate", i.estimate}, {"high", i.high}}; }

Json json_of(const SymbolValues& symbols) {
  Json object = Json::object();
  for (const auto& [name, value] : symbols) object[name] = value;
  return object;
}

std::string percent(double share, int decimals) { return fmt::format("{:.{}f} %", 100 * share, decimals); }

std::string listed(const std::vector<std::string>& words, size_t most) {
  if (words.size() <= most) return fmt::format("{}", fmt::join(words, ", "));
  return fmt::format("{}, ... and {} more",
                     fmt::join(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(most), ", "),
                     words.size() - most);
}

std::vector<std::string> grouped_notes(const std::vector<std::string>& notes) {
  struct Group {
    std::string rule, what;
    std::vector<std::string> nodes;
  };
  std::vector<Group> groups;
  for (const std::string& text : notes) {
    const size_t at = text.find(" at ");
    const size_t end = at == std::string::npos ? at : text.find_first_of(": ", at + 4);
    Group group{text.substr(0, at), end == std::string::npos ? "" : text.substr(end), {}};
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& known) {
      return known.rule == group.rule && known.what == group.what;
    });
    Group& into = same == groups.end() ? groups.emplace_back(std::move(group)) : *same;
    if (at != std::string::npos)
      into.nodes.push_back(text.substr(at + 4, end == std::string::npos ? end : end - at - 4));
  }
  std::vector<std::string> lines;
  for (const Group& group : groups)
    lines.push_back(fmt::format("{}{}{}{}{}", group.nodes.size() > 1 ? fmt::format("{} x ", group.nodes.size()) : "",
                                group.rule, group.nodes.empty() ? "" : " at ", listed(group.nodes, 2), group.what));
  return lines;
}

std::string read_text_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw fail(E::bad_file, "'{}' is a folder, not a file", path).file(path);
  auto text = file_bytes(path);
  if (!text) throw fail(E::file_not_found, "cannot read '{}': {}", path, std::strerror(errno)).file(path);
  remember_read_file(path);
  return *std::move(text);
}

void write_text_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

double parse_duration(const std::string& text, double unit) {
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  std::string suffix = text.substr(used);
  suffix.erase(0, suffix.find_first_not_of(' '));
  const double scale = suffix == "s"    ? 1
                       : suffix == "ms" ? 1e-3
                       : suffix == "us" ? 1e-6
                       : suffix == "m"  ? 60
                       : suffix.empty() ? unit
                                        : -1;
  constexpr double kLongest = 1e9;  // seconds; nanoseconds are counted in 64 bits
  if (!(value >= 0) || scale < 0 || !(value * scale <= kLongest))
    throw fail(E::bad_option, "'{}' is not a duration", text).hint("write 200ms, 3s or 1.5s");
  return value * scale;
}

}  // namespace opfuse::cli
