#include "plan_file.hpp"

#include "opfuse/error.hpp"
#include "report.hpp"

namespace opfuse::cli {

FusionPlan read_plan(const std::string& path) {
  try {
    return plan_from_json(read_text_file(path));
  } catch (Error& error) {
    throw error.file(path);
  }
}

}  // namespace opfuse::cli
