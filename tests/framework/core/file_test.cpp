#include "framework/core/file.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {

using test::TemporaryFolder;
using test::text_of;

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

TEST_CASE("check_writable finds an unwritable path before anything is written", "[core][file]") {
  const TemporaryFolder folder;
  check_writable(folder / "new");
  CHECK(folder.files() == 0);
  QUANTRAIN_CHECK_ERROR(check_writable(folder / "none/a"),
                        DataError,
                        "none/a: no file can be made in its folder: No such");
  QUANTRAIN_CHECK_ERROR(check_writable(folder.path()), DataError, "is not a regular file");
  QUANTRAIN_CHECK_ERROR(check_writable(""), DataError, "path to write to is empty");
  QUANTRAIN_CHECK_ERROR(
      write_file(folder / "none/a", "text"), DataError, "No such file or directory");
  CHECK(folder.files() == 0);
}

TEST_CASE("only regular files are replaced", "[core][file]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "target");
  QUANTRAIN_CHECK_ERROR(write_file(folder / "target", "text"), DataError, "is not a regular file");
  CHECK(folder.files() == 1);
}

TEST_CASE("a path that goes on after a zero byte is refused", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "text");
  const std::string path = folder / "a" + std::string("\0.txt", 5);
  const std::string text = "a: the path has a zero byte after this part";
  QUANTRAIN_CHECK_ERROR(InputFile(path), DataError, text);
  QUANTRAIN_CHECK_ERROR(write_file(path, "other"), DataError, text);
  QUANTRAIN_CHECK_ERROR(check_writable(path), DataError, text);
  QUANTRAIN_CHECK_ERROR(names_in(folder.path() + std::string("\0a", 2)),
                        DataError,
                        "has a zero byte after this part");
  CHECK(text_of(folder / "a") == "text");
}

TEST_CASE("a file can be read in parts and says how many bytes are left", "[core][file]") {
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
  file.rewind();
  CHECK(file.left() == 9);
  CHECK(file.read(part) == 5);
  CHECK(part[0] == 's');
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
