// One list of the process, guarded by a mutex: weights are read from several threads.
#include "base/read_files.hpp"

#include <sys/stat.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace opfuse {
namespace {

using FileId = std::pair<dev_t, ino_t>;

std::atomic<bool> g_remember{false};
std::mutex g_mutex;
std::map<FileId, std::string> g_files;

/// Regular files only: devices and pipes are not replaced by writing to them.
bool identify(const std::string& path, FileId& id) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  id = {info.st_dev, info.st_ino};
  return true;
}

}  // namespace

void remember_read_files() { g_remember = true; }

void remember_read_file(const std::string& path) {
  FileId id;
  if (!g_remember || !identify(path, id)) return;
  const std::lock_guard lock(g_mutex);
  g_files.emplace(id, path);
}

std::string read_as(const std::string& path) {
  FileId id;
  if (!g_remember || !identify(path, id)) return {};
  const std::lock_guard lock(g_mutex);
  const auto at = g_files.find(id);
  return at == g_files.end() ? std::string() : at->second;
}

}  // namespace opfuse
