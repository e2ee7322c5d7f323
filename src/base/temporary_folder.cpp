#include "base/temporary_folder.hpp"

#include <cstdlib>
#include <filesystem>

#include "base/fail.hpp"

namespace opfuse {

TemporaryFolder::TemporaryFolder() {
  std::string form = (std::filesystem::temp_directory_path() / "opfuse-XXXXXX").string();
  if (!mkdtemp(form.data())) throw fail(E::file_write_failed, "cannot make a temporary folder '{}'", form);
  folder_ = form;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace opfuse
