#include "ort_calls.hpp"

namespace opfuse::ort {

Tables tables;

void check(Status* status) {
  if (!status) return;
  const std::string message = tables.api(entry::GetErrorMessage, status);
  tables.api(entry::ReleaseStatus, status);
  throw Failure(message);
}

Status* status_of(const char* what, const std::exception& error) {
  return tables.api(entry::CreateStatus, kFail, (std::string("opfuse, ") + what + ": " + error.what()).c_str());
}

}  // namespace opfuse::ort
