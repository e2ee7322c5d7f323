#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

#include "ort_calls.hpp"

namespace opfuse::ort {
namespace {

int64_t number(const std::string& name, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw Failure("option " + name + " = '" + text + "': write a number");
  return value;
}

bool flag(const std::string& name, const std::string& text) {
  if (text == "1" || text == "true" || text == "True") return true;
  if (text == "0" || text == "false" || text == "False") return false;
  throw Failure("option " + name + " = '" + text + "': write 0 or 1");
}

std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> found;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) found.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

/// "batch=1,length=128;batch=8,length=128"
std::vector<std::map<std::string, int64_t>> variants(const std::string& name, const std::string& text) {
  std::vector<std::map<std::string, int64_t>> all;
  for (const std::string& variant : parts(text, ';')) {
    all.emplace_back();
    for (const std::string& size : parts(variant, ',')) {
      const size_t equals = size.find('=');
      if (equals == std::string::npos) throw Failure("option " + name + ": write batch=1,length=128;batch=8");
      all.back()[size.substr(0, equals)] = number(name, size.substr(equals + 1));
    }
  }
  return all;
}

struct Row {
  const char* name;
  std::function<void(Options&, const std::string& name, const std::string& text)> take;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {"target", [](Options& o, const auto&, const auto& text) { o.target = Target::named(text); }},
      {"threads", [](Options& o, const auto& n, const auto& text) { o.compile.threads = int(number(n, text)); }},
      {"exact", [](Options& o, const auto& n, const auto& text) { o.compile.exact = flag(n, text); }},
      {"measure", [](Options& o, const auto& n, const auto& text) { o.compile.measure = flag(n, text); }},
      {"precision", [](Options& o, const auto&, const auto& text) { o.compile.plan.precision = parts(text, ';'); }},
      {"specialize", [](Options& o, const auto& n, const auto& text) { o.compile.specialize = variants(n, text); }},
      {"min_nodes", [](Options& o, const auto& n, const auto& text) { o.min_nodes = size_t(number(n, text)); }},
  };
  return table;
}

std::string names_of_rows() {
  std::string text;
  for (const Row& row : rows()) text += std::string(text.empty() ? "" : ", ") + row.name;
  return text;
}

}  // namespace

Options options_of(const SessionOptions* session) {
  Options options;
  std::string prefix = std::string("ep.") + kProviderName + ".";
  std::transform(prefix.begin(), prefix.end(), prefix.begin(), [](unsigned char c) { return std::tolower(c); });
  KeyValuePairs* pairs = get<KeyValuePairs*>(entry::GetSessionOptionsConfigEntries, session);
  const char *const *keys = nullptr, *const *values = nullptr;
  size_t count = 0;
  tables.api(entry::GetKeyValuePairs, pairs, &keys, &values, &count);
  const std::map<std::string, std::string> given = [&] {
    std::map<std::string, std::string> copies;
    for (size_t i = 0; i < count; ++i) copies[keys[i]] = values[i];
    return copies;
  }();
  tables.api(entry::ReleaseKeyValuePairs, pairs);
  for (const auto& [key, text] : given) {
    if (key == "ep.context_enable") options.write_context = flag(key, text);
    if (key == "ep.context_embed_mode") options.embed_context = flag(key, text);
    if (key == "ep.context_file_path") options.context_path = text;
    if (!key.starts_with(prefix)) continue;
    const std::string name = key.substr(prefix.size());
    const auto row = std::find_if(rows().begin(), rows().end(), [&](const Row& r) { return r.name == name; });
    if (row == rows().end()) throw Failure("there is no option '" + name + "': " + names_of_rows());
    row->take(options, name, text);
  }
  return options;
}

}  // namespace opfuse::ort
