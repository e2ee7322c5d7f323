#include "base/temporary_folder.hpp"

#include <cstdlib>
#include <filesystem>

#include "base/fail.hpp"

namespace opfuse {

TemporaryFolder::TemporaryFolder() {
  std::error_code missing;
  std::string form = (std::filesystem::temp_directory_path(missing) / "opfuse-XXXXXX").string();
  if (missing || !mkdtemp(form.data()))
    throw fail(E::file_write_failed, "cannot make a temporary folder '{}'", form)
        .hint("TMPDIR names the folder to make it in; does it exist, may you write there?");
  folder_ = form;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace opfuse
