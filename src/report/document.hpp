// The report as one JSON document, schema opfuse.report/1 (docs/json.md). The page is a viewer of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/subject.hpp"

namespace opfuse::report {

using Json = nlohmann::ordered_json;

struct DocumentOptions {
  size_t timeline_parts = 20'000;  ///< beyond it the parts of a launch on one worker are one
};

/// One entry of "models".
Json model_json(const Subject& subject, const DocumentOptions& options);

Json graph_json(const View& view, const std::vector<Unit>& units);
Json launches_json(const Subject& subject, Json& texts);
Json missed_json(const Subject& subject);
Json memory_json(const Subject& subject);
Json timeline_json(const Subject& subject, const DocumentOptions& options);
Json proof_json(const Comparison& proof);

/// zlib, then base64: what `new DecompressionStream("deflate")` takes back.
std::string packed_text(const std::string& text);

}  // namespace opfuse::report
