// Patterns of a user: records of text, from a TOML file or from code, that become FusionPatterns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fusion/patterns.hpp"
#include "fusion/user/condition.hpp"

namespace opfuse {

struct PatternExample {
  std::string graph;  ///< .fir text
  bool fires = true;
};

struct UserPattern {
  FusionPattern pattern;
  std::vector<PatternExample> examples;
};

/// A pattern in text form, each part with its place for messages.
struct PatternText {
  struct Part {
    std::string text;
    TextPlace at;
  };
  std::string name, module, doc, root;
  Part topology;
  std::vector<Part> where;
  std::vector<std::pair<std::string, std::string>> points;  ///< "INPUT" -> binding
  int64_t priority = 1;                                     ///< before the catalogue, whose patterns have 0
};

inline constexpr int kMostPriority = 1000;  ///< priorities lie in [-1000, 1000]

/// E::bad_file with file, line and column for whatever does not parse or name what exists, a priority out of range and
/// a module with "__".
FusionPattern make_pattern(const PatternText& text);

/// [[pattern]] tables of a TOML file (docs/fusion.md). E::file_not_found, E::bad_file, with the file.
std::vector<UserPattern> read_patterns(const std::string& path);
std::vector<UserPattern> parse_patterns(std::string_view toml, const std::string& file);

/// `own` patterns, those of all files, then the catalogue. The errors of make_pattern and read_patterns; E::bad_option
/// with the file when two patterns have one name.
std::vector<FusionPattern> patterns_with(const std::vector<std::string>& files,
                                         const std::vector<PatternText>& own = {});

/// Runs one example: prepared, planned with this pattern alone, interpreted before and after. Empty when it is as
/// stated.
std::string check_example(const FusionPattern& pattern, const PatternExample& example);

}  // namespace opfuse
