// Seeds walk through target x form in turns; exactness and threads change slower, so that all pairs meet.
#include "fuzz/configuration.hpp"

#include <fmt/core.h>

#include <iterator>
#include <sstream>

#include "base/fail.hpp"
#include "target/missing_features.hpp"
#include "target/target.hpp"

namespace opfuse::fuzz {

namespace {

/// The first of kTargets from `first` on that this machine runs; every machine runs the last.
const char* runnable_from(size_t first) {
  const auto runs = [](const char* name) { return missing_features(parse_target(name).features).empty(); };
  while (first + 1 < std::size(kTargets) && !runs(kTargets[first])) ++first;
  return kTargets[first];
}

bool runs_codes() {
  static const bool runs = missing_features(parse_target(kTargetOfCodes).features).empty();
  return runs;
}

}  // namespace

std::string Configuration::name() const {
  return fmt::format("{} {}{}", target, kForms[static_cast<size_t>(form)], exact ? " exact" : "");
}

std::string Configuration::flags() const {
  if (form == Form::unfused || threads == 0) return {};
  static constexpr const char* kFlags[] = {"", " --no-chains", " --no-rules", ""};
  return fmt::format("--target {}{}{} --threads {} --no-cache", target, kFlags[static_cast<size_t>(form)],
                     exact ? " --exact" : "", threads);
}

std::vector<std::string> all_configurations() {
  std::vector<std::string> names;
  std::vector<const char*> targets(std::begin(kTargets), std::end(kTargets));
  targets.push_back(kTargetOfCodes);
  for (const char* target : targets)
    for (size_t form = 0; form < std::size(kForms); ++form)
      for (const bool exact : {false, true})
        names.push_back(Configuration{target, static_cast<Form>(form), exact}.name());
  return names;
}

Configuration configuration_of(uint64_t seed, const DrawOptions& options) {
  Configuration c;
  c.target = runnable_from(seed % std::size(kTargets));
  c.form = static_cast<Form>(seed / std::size(kTargets) % std::size(kForms));
  if (options.attention && c.target == kTargets[0] && runs_codes()) c.target = kTargetOfCodes;
  Random random(seed, "configuration");
  c.exact = options.exact || random.uniform() < 0.4;
  c.threads = static_cast<int>(random.between(0, 3));
  return c;
}

Configuration parse_configuration(const std::string& text) {
  Configuration c;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    bool known = false;
    for (size_t form = 0; form < std::size(kForms); ++form)
      if (word == kForms[form]) c.form = static_cast<Form>(form), known = true;
    if (word == "exact") c.exact = known = true;
    if (word.rfind("cpu:", 0) == 0) c.target = word, known = true;
    if (word.rfind("threads=", 0) == 0) c.threads = std::stoi(word.substr(8)), known = true;
    if (!known) throw fail(E::bad_option, "'{}' is not part of a configuration", word);
  }
  return c;
}

}  // namespace opfuse::fuzz
