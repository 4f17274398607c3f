#include "framework/core/file.hpp"

#include <sys/resource.h>

#include <csignal>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::TemporaryFolder;

std::string text_of(const std::string& path) {
  const std::vector<uint8_t> bytes = test::read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

// While it lives, no file of this process can grow beyond this size: write() does a part, then
// fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit old_{};
};

}  // namespace

TEST_CASE("a file is written whole and replaces the old one", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "a longer first version");
  CHECK(text_of(folder / "a") == "a longer first version");
  write_file(folder / "a", "second");
  CHECK(text_of(folder / "a") == "second");
  write_file(folder / "a", "");
  CHECK(text_of(folder / "a").empty());
  CHECK(folder.files() == 1);
}

TEST_CASE("a path is found unwritable before anything is written", "[core][file]") {
  const TemporaryFolder folder;
  check_writable(folder / "new");
  CHECK(folder.files() == 0);
  QUANTRAIN_CHECK_ERROR(check_writable(folder / "none/a"),
                        DataError,
                        "none/a: no file can be made in its folder: No such");
  QUANTRAIN_CHECK_ERROR(check_writable(folder.path()), DataError, "is not a regular file");
  QUANTRAIN_CHECK_ERROR(check_writable("/dev/null"), DataError, "/dev/null: is not a regular file");
  QUANTRAIN_CHECK_ERROR(check_writable(""), DataError, "path to write to is empty");
  write_file(folder / "file", "text");
  QUANTRAIN_CHECK_ERROR(
      check_writable(folder / "file/a"), DataError, "file/a: cannot be written: Not a directory");
  QUANTRAIN_CHECK_ERROR(
      write_file(folder / "none/a", "text"), DataError, "No such file or directory");
  CHECK(folder.files() == 1);
}

TEST_CASE("a write that fails half way leaves the old file and nothing else", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  const auto write_more_than_fits = [&] {
    const FileSizeLimit limit(1000);
    write_file(folder / "a", std::string(5000, 'x'));
  };
  QUANTRAIN_CHECK_ERROR(write_more_than_fits(), DataError, "/a: cannot be written: File too large");
  CHECK(text_of(folder / "a") == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("only regular files are replaced", "[core][file]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "target");
  QUANTRAIN_CHECK_ERROR(write_file(folder / "target", "text"), DataError, "is not a regular file");
  CHECK(folder.files() == 1);
}

TEST_CASE("a file that is replaced keeps its permissions", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  for (const auto mode : {0600, 0666, 0750}) {
    const auto permissions = static_cast<std::filesystem::perms>(mode);
    std::filesystem::permissions(folder / "a", permissions);
    write_file(folder / "a", "new");
    CHECK(std::filesystem::status(folder / "a").permissions() == permissions);
  }
}

TEST_CASE("writing to a symbolic link writes the file that it points to", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "file", "old");
  std::filesystem::create_symlink(folder / "file", folder / "link");
  write_file(folder / "link", "new");
  CHECK(text_of(folder / "file") == "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
}

TEST_CASE("writing to a symbolic link makes the file that it points to", "[core][file]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "other");
  std::filesystem::create_symlink("other/file", folder / "link");
  std::filesystem::create_symlink("link", folder / "link to link");
  check_writable(folder / "link to link");
  write_file(folder / "link to link", "new");
  CHECK(text_of(folder / "other/file") == "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(std::filesystem::is_symlink(folder / "link to link"));
  std::filesystem::create_symlink("circle", folder / "circle");
  QUANTRAIN_CHECK_ERROR(write_file(folder / "circle", "text"), DataError, "cannot be written");
}

TEST_CASE("a temporary file that an earlier process left behind is in nobody's way",
          "[core][file]") {
  const TemporaryFolder folder;
  // More names than this process has used up: the next one is taken.
  const std::string left = folder / "a.tmp" + std::to_string(::getpid()) + '-';
  for (int number = 1; number <= 300; ++number)
    test::write_bytes(left + std::to_string(number), {});
  write_file(folder / "a", "text");
  CHECK(text_of(folder / "a") == "text");
}

TEST_CASE("a file is read in parts, and says how much is left", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "some text");
  InputFile file(folder / "a");
  CHECK(file.left() == 9);
  std::vector<uint8_t> part(5);
  CHECK(file.read(part) == 5);
  CHECK(std::string(part.begin(), part.end()) == "some ");
  CHECK(file.left() == 4);
  CHECK(file.read(part) == 4);
  CHECK(std::string(part.begin(), part.begin() + 4) == "text");
  CHECK(file.left() == 0);
  CHECK(file.read(part) == 0);
  QUANTRAIN_CHECK_ERROR(InputFile(folder / "b"), DataError, "b: cannot be opened: No such file");
  QUANTRAIN_CHECK_ERROR(InputFile(folder.path()), DataError, "is not a regular file");
}

TEST_CASE("a file that is cut while it is read ends early", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", std::string(100'000, 'x'));
  InputFile file(folder / "a");
  std::filesystem::resize_file(folder / "a", 10);
  std::vector<uint8_t> bytes(100'000);
  CHECK(file.read(bytes) == 10);
  CHECK(file.left() == 0);
}

}  // namespace quantrain
