#include "framework/core/file.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/path.hpp"
#include "framework/core/system/file.hpp"
#include "tests/catch.hpp"
#include "tests/far_folder.hpp"
#include "tests/system.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {

using test::kFarName;
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

TEST_CASE("names may have spaces and letters of all languages", "[core][file]") {
  const TemporaryFolder folder;
  make_folders(folder / kFarName);
  const std::string path = folder / kFarName + "/" + kFarName + " 1";
  check_writable(path);
  write_file(path, "text");
  write_file(path, "new text");
  CHECK(text_of(path) == "new text");
  CHECK(names_in(folder / kFarName) == std::vector<std::string>{kFarName + " 1"});
  CHECK(exists(path));
  CHECK(InputFile(path).left() == 8);
  QUANTRAIN_CHECK_ERROR(InputFile(path + "?"), DataError, kFarName + " 1?: cannot be opened: ");
}

TEST_CASE("a path may be longer than 260 characters", "[core][file]") {
  const test::FarFolder folder;
  REQUIRE(folder.path().size() > 300);
  const std::string path = folder / "file";
  check_writable(path);
  write_file(path, "old");
  write_file(path, "text");
  InputFile file(path);
  std::string read(4, ' ');
  CHECK(file.read({reinterpret_cast<uint8_t*>(read.data()), read.size()}) == 4);
  CHECK(read == "text");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"file"});
  CHECK(system::append(path, " and more"));
  CHECK(InputFile(path).left() == 13);
  const system::Inside inside = system::open_inside(folder.path(), {"file"});
  CHECK(inside.is_regular);
  CHECK(inside.size == 13);
}

TEST_CASE("lines are appended to a file", "[core][file]") {
  const TemporaryFolder folder;
  const std::string path = folder / kFarName;
  REQUIRE(system::append(path, "one\n"));
  REQUIRE(system::append(path, "two\n"));
  CHECK(text_of(path) == "one\ntwo\n");
  CHECK_FALSE(system::append(folder / "none/a", "one\n"));
  CHECK(system::last_error() == "No such file or directory");
}

TEST_CASE("an append that fails leaves the file as it was, or missing", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  // The system can read the first half of the text only.
  const test::GuardedMemory memory = test::guarded_memory(1, true);
  const std::string_view text(memory.first, 2 * memory.bytes);
  for (const char* const name : {"a", "b"}) CHECK_FALSE(system::append(folder / name, text));
  test::release(memory);
  CHECK(text_of(folder / "a") == "old");
  CHECK(folder.files() == 1);
}

}  // namespace quantrain
