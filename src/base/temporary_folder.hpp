// A folder of its own below the system's temporary one, removed with everything in it.
#pragma once

#include <string>

namespace opfuse {

class TemporaryFolder {
 public:
  TemporaryFolder();  ///< E::file_write_failed
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

}  // namespace opfuse
