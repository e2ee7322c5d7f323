// What every report shares: one JSON document on stdout, warnings on stderr, numbers in words.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "profile/statistics.hpp"
#include "tensor/dim.hpp"

namespace opfuse::cli {

using Json = nlohmann::ordered_json;

/// JSON whatever the document holds: a number that is not finite becomes null, bytes that are not UTF-8 become U+FFFD.
/// Names of nodes and files may be any bytes.
std::string json_text(const Json& document, int indent);
/// The same as the whole of stdout.
void print_json(const Json& document);
/// A document that begins with its schema ("opfuse.bench/1") and opfuse's version.
Json document(const std::string& schema);

void warn(const std::string& text);  ///< "warning: ..." on stderr
void note(const std::string& text);  ///< "note: ..." on stderr, unless -q

Json json_of(const Summary& summary);    ///< {"min", "median", "p90", "p95", "p99", "mean", "cv", "count"}
Json json_of(const Interval& interval);  ///< {"low", "estimate", "high"}
Json json_of(const SymbolValues& symbols);

std::string percent(double share, int decimals = 1);  ///< 0.934 -> "93.4 %"
/// Joins with ", "; beyond `most` entries "... and 12 more".
std::string listed(const std::vector<std::string>& words, size_t most = 4);
/// "RULE at NODE: WHAT" lines with equal rules and results as one: "12 x gelu at /a, /b, ... and 10 more: WHAT".
std::vector<std::string> grouped_notes(const std::vector<std::string>& notes);
std::string read_text_file(const std::string& path);                     ///< E::file_not_found
void write_text_file(const std::string& path, const std::string& text);  ///< E::file_write_failed
/// "200ms", "3s", "1.5 s", "250us", or a bare number of `unit` seconds. E::bad_option.
double parse_duration(const std::string& text, double unit);

}  // namespace opfuse::cli
