// {"schema": "opfuse.timings/1", "timings": [{"region", "layouts", "machine", "form", "median_us", "spread", "count",
// "generator"}]}: one line each, sorted, so that files merge by hand and by version control too.
#include "tune/timing_cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "base/file_bytes.hpp"
#include "base/json_fields.hpp"

namespace opfuse {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kSchema = "opfuse.timings/1";

auto rank_of(const Timing& t) { return std::tie(t.form, t.generator); }

Json json_of(const TimingKey& key, const Timing& t) {
  return {{"region", key.region},  {"layouts", key.layouts}, {"machine", key.machine}, {"form", t.form},
          {"median_us", t.median}, {"spread", t.spread},     {"count", t.count},       {"generator", t.generator}};
}

}  // namespace

std::string TimingCache::default_file() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache) return std::string(cache) + "/opfuse/timings.json";
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/opfuse/timings.json" : "";
}

const Timing* TimingCache::find(const TimingKey& key, const std::string& form, const std::string& generator) const {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return nullptr;
  for (const Timing& t : at->second)
    if (t.form == form && t.generator == generator) return &t;
  return nullptr;
}

const Timing* TimingCache::hint(const TimingKey& key, const std::string& form) const {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return nullptr;
  const Timing* most = nullptr;
  for (const Timing& t : at->second)
    if (t.form == form && (!most || t.count > most->count)) most = &t;
  return most;
}

const Timing* TimingCache::fastest(const TimingKey& key, const std::string& prefix,
                                   const std::string& generator) const {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return nullptr;
  const Timing* best = nullptr;
  for (const Timing& t : at->second)
    if (t.form.starts_with(prefix) && t.generator == generator && (!best || t.median < best->median)) best = &t;
  return best;
}

bool TimingCache::measured_elsewhere(const TimingKey& key, const std::string& prefix,
                                     const std::string& generator) const {
  for (auto at = entries_.lower_bound({key.region, key.layouts, ""});
       at != entries_.end() && at->first.region == key.region && at->first.layouts == key.layouts; ++at)
    for (const Timing& t : at->second)
      if (t.form.starts_with(prefix) && (at->first.machine != key.machine || t.generator != generator)) return true;
  return false;
}

void TimingCache::add(const TimingKey& key, const Timing& timing) {
  std::vector<Timing>& known = entries_[key];
  const auto same =
      std::find_if(known.begin(), known.end(), [&](const Timing& t) { return rank_of(t) == rank_of(timing); });
  if (same == known.end())
    known.insert(std::upper_bound(known.begin(), known.end(), timing,
                                  [](const Timing& a, const Timing& b) { return rank_of(a) < rank_of(b); }),
                 timing);
  else if (std::tie(timing.count, same->median) >= std::tie(same->count, timing.median))
    *same = timing;
}

void TimingCache::merge(const TimingCache& other) {
  for (const auto& [key, timings] : other.entries_)
    for (const Timing& t : timings) add(key, t);
}

size_t TimingCache::size() const {
  size_t count = 0;
  for (const auto& [key, timings] : entries_) count += timings.size();
  return count;
}

std::string TimingCache::json() const {
  std::string text = std::string("{\"schema\": \"") + kSchema + "\", \"timings\": [";
  const char* separator = "\n";
  for (const auto& [key, timings] : entries_)
    for (const Timing& t : timings) {
      text += separator + json_of(key, t).dump(-1, ' ', false, Json::error_handler_t::replace);
      separator = ",\n";
    }
  return text + "\n]}\n";
}

TimingCache TimingCache::from_json(std::string_view text) try {
  const Json document = Json::parse(text);
  if (document.at("schema").get<std::string>() != kSchema)
    throw fail(E::bad_file, "the timings have schema \"{}\"; this opfuse reads \"{}\"",
               document.at("schema").get<std::string>(), kSchema)
        .hint("delete the file, or name another: it is measured again");
  TimingCache cache;
  for (const Json& row : document.at("timings")) {
    const Timing t{row.at("form").get<std::string>(), row.at("median_us").get<double>(), row.at("spread").get<double>(),
                   whole<int64_t>(row.at("count")), row.at("generator").get<std::string>()};
    if (!(t.median >= 0) || !(t.spread >= 0) || t.count < 0)
      throw fail(E::bad_file, "the timings have a time, a spread or a count below zero");
    cache.add({row.at("region").get<std::string>(), row.at("layouts").get<std::string>(),
               row.at("machine").get<std::string>()},
              t);
  }
  return cache;
} catch (const Json::exception& e) {
  throw fail(E::bad_file, "the timings are not readable: {}", e.what())
      .hint("delete the file, or name another: it is measured again");
}

TimingCache TimingCache::read(const std::string& file) {
  const auto text = file_bytes(file);
  return text ? from_json(*text) : TimingCache{};
}

void TimingCache::write(const std::string& file) const {
  if (file.empty()) return;
  std::error_code ignored;  // where there is no folder, the file says so
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), ignored);
  TimingCache all = read(file);
  all.merge(*this);
  AtomicFile out(file);
  out.write(all.json());
  out.commit();
}

}  // namespace opfuse
