// Files appear whole or not at all, and are read by mapping them.
#include <gtest/gtest.h>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "base/file_bytes.hpp"
#include "base/mapped_file.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse {
namespace {

using test::TemporaryFolder;

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", "old");
  const auto reader = MappedFile::open(path);
  {
    AtomicFile file(path);
    file.write("new ");
    file.write("text");
    EXPECT_EQ(file.written(), 8u);
    EXPECT_EQ(folder.read("x"), "old");
    file.commit();
  }
  EXPECT_EQ(folder.read("x"), "new text");
  EXPECT_EQ(reader->bytes(), "old") << "who mapped the old file keeps it";
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(AtomicFile, LeavesNothingBehindWithoutACommit) {
  const TemporaryFolder folder;
  folder.write("x", "old");
  { AtomicFile(folder.path("x")).write("half"); }
  EXPECT_EQ(folder.read("x"), "old");
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(AtomicFile, NamesThePathItCannotWrite) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.path("no/such/folder"), folder.path("")}) try {
      AtomicFile file(path);
      ADD_FAILURE() << path;
    } catch (const Error& e) {
      EXPECT_EQ(e.diagnostic().name, "file_write_failed");
      EXPECT_EQ(e.diagnostic().file, path);
    }
}

TEST(AtomicFile, WritesDevicesDirectly) {
  AtomicFile file("/dev/null");
  file.write("x");
  EXPECT_NO_THROW(file.commit());
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_THROW(MappedFile::open(folder.path("")), Error);
  EXPECT_THROW(MappedFile::open(folder.path("absent")), Error);
  EXPECT_EQ(MappedFile::open(folder.write("empty", ""))->bytes(), "");
}

TEST(FileBytes, AreAllOfThem) {
  const TemporaryFolder folder;
  std::string bytes(100'000, 'x');
  bytes[3] = '\0', bytes[70'000] = '\xff';
  EXPECT_EQ(file_bytes(folder.write("some", bytes)), bytes);
  EXPECT_EQ(file_bytes(folder.write("none", "")), "");
  EXPECT_EQ(file_bytes(folder.path("missing")), std::nullopt);
}

}  // namespace
}  // namespace opfuse
