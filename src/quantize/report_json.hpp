// What was done and how near the result is, as JSON and as a page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "quantize/agreement.hpp"
#include "quantize/quantize_graph.hpp"
#include "quantize/search.hpp"

namespace opfuse::quantization {

/// The fields of "opfuse.quantize/1" (docs/json.md) but for schema, model and files.
nlohmann::ordered_json report_json(const QuantizedModel& made, const QuantizeOptions& options,
                                   const std::optional<Agreement>& agreement);
nlohmann::ordered_json agreement_json(const Agreement& agreement);
nlohmann::ordered_json search_json(const Search& search);

/// One HTML file that loads nothing; `document` is the whole report.
std::string report_page(const nlohmann::ordered_json& document);

/// "r.html" is the page, "r.json" the document. E::bad_option for other names, E::file_write_failed.
void write_report(const std::string& path, const nlohmann::ordered_json& document);

}  // namespace opfuse::quantization
