// The document of a report around its models: what was asked for, when, on which machine.
#pragma once

#include "report.hpp"

namespace opfuse::cli {

/// Schema opfuse.report/1 (docs/json.md).
Json report_of(Json models);

}  // namespace opfuse::cli
