#include "framework/core/file.hpp"

#include <windows.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/path.hpp"
#include "framework/core/system/file.hpp"
#include "framework/core/system/process.hpp"
#include "framework/core/system/windows/wide.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::TemporaryFolder;
using test::text_of;

const std::string kFarName =
    "Gr\xC3\xB6\xC3\x9F"
    "e \xD0\x96 \xE6\x95\xB0 \xF0\x9F\x99\x82";

/// A file that is open for reading, and lets others do `sharing` with it.
system::File opened(const std::string& path, DWORD sharing) {
  return system::File(
      reinterpret_cast<system::File::Handle>(::CreateFileW(system::to_wide(path).c_str(),
                                                           GENERIC_READ,
                                                           sharing,
                                                           nullptr,
                                                           OPEN_EXISTING,
                                                           FILE_ATTRIBUTE_NORMAL,
                                                           nullptr)));
}

std::string with_slashes(std::string path) {
  for (char& c : path) c = c == '\\' ? '/' : c;
  return path;
}

}  // namespace

TEST_CASE("names may have spaces and letters of all languages", "[core][file]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(to_path(folder / kFarName));
  const std::string path = folder / kFarName + "/" + kFarName + " 1";
  check_writable(path);
  write_file(path, "text");
  write_file(path, "new text");
  CHECK(text_of(path) == "new text");
  CHECK(names_in(folder / kFarName) == std::vector<std::string>{kFarName + " 1"});
  CHECK(std::filesystem::exists(to_path(path)));
  CHECK(InputFile(path).left() == 8);
  QUANTRAIN_CHECK_ERROR(InputFile(path + "?"), DataError, kFarName + " 1?: cannot be opened: ");
}

TEST_CASE("a path that is not UTF-8 names no file", "[core][file]") {
  const TemporaryFolder folder;
  const std::string path = folder / "a" + "\xFF";
  QUANTRAIN_CHECK_ERROR(write_file(path, "text"), DataError, "no file can be made in its folder");
  QUANTRAIN_CHECK_ERROR(InputFile(path), DataError, "cannot be opened");
  CHECK(folder.files() == 0);
}

TEST_CASE("a path may have a drive, and slashes of both kinds", "[core][file]") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  REQUIRE(path[1] == ':');
  write_file(with_slashes(path), "text");
  CHECK(text_of(path) == "text");
  CHECK(system::folder_of(R"(C:\a\b)") == R"(C:\a)");
  CHECK(system::folder_of("C:/a") == "C:/");
  CHECK(system::folder_of("C:a") == "C:");
  CHECK(system::folder_of(R"(a\b)") == "a");
  CHECK(system::folder_of("a") == ".");
  CHECK(system::folder_of("/a") == "/");
  CHECK(system::name_of(R"(C:\a\b)") == "b");
  CHECK(system::name_of("C:b") == "b");
  CHECK(names_in(with_slashes(folder.path()) + "/") == std::vector<std::string>{"a"});
}

TEST_CASE("a drive without a slash is its current folder", "[core][file]") {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(to_path(folder.path()));
  const std::string name = folder.path().substr(0, 2) + "a";
  write_file(folder / "a.tmp1-1", "left");
  write_file(name, "text");
  const std::vector<std::string> names = names_in(folder.path().substr(0, 2));
  std::filesystem::current_path(before);
  CHECK(names == std::vector<std::string>{"a"});
  CHECK(text_of(folder / "a") == "text");
}

TEST_CASE("a path may be longer than 260 characters", "[core][file]") {
  const TemporaryFolder folder;
  std::string path = R"(\\?\)" + folder.path();
  for (int i = 0; i < 4; ++i) {
    path += '\\' + std::string(100, static_cast<char>('a' + i));
    REQUIRE(::CreateDirectoryW(system::to_wide(path).c_str(), nullptr) != 0);
  }
  const std::string usual = with_slashes(path.substr(4)) + "/file";
  write_file(usual, "old");
  write_file(usual, "text");
  CHECK(InputFile(usual).left() == 4);
  CHECK(names_in(usual.substr(0, usual.size() - 5)) == std::vector<std::string>{"file"});
  // The folder's destructor cannot remove such a path.
  CHECK(::DeleteFileW(system::to_wide(path + R"(\file)").c_str()) != 0);
  for (; path.size() > folder.path().size() + 4; path.resize(path.rfind('\\')))
    CHECK(::RemoveDirectoryW(system::to_wide(path).c_str()) != 0);
}

TEST_CASE("devices and files that may only be read are not written", "[core][file]") {
  const TemporaryFolder folder;
  QUANTRAIN_CHECK_ERROR(check_writable("NUL"), DataError, "NUL: is not a regular file");
  QUANTRAIN_CHECK_ERROR(InputFile("NUL"), DataError, "NUL: is not a regular file");
  write_file(folder / "a", "text");
  ::SetFileAttributesW(system::to_wide(folder / "a").c_str(), FILE_ATTRIBUTE_READONLY);
  QUANTRAIN_CHECK_ERROR(
      write_file(folder / "a", "new"), DataError, "a: cannot be written: Permission denied");
  ::SetFileAttributesW(system::to_wide(folder / "a").c_str(), FILE_ATTRIBUTE_NORMAL);
  write_file(folder / "a", "new");
  CHECK(text_of(folder / "a") == "new");
}

TEST_CASE("the next write removes the temporary files of dead processes", "[core][file]") {
  const TemporaryFolder folder;
  for (int number = 1; number <= 64; ++number)
    test::write_bytes(folder / "a.tmp" + std::to_string(number) + "-1", {});
  const std::vector<std::string> others = {
      "b.tmp1-1", "a.tmp", "a.tmp1", "a.tmp1-", "a.tmp-1", "a.tmp1-1x", "a.tmp1-1-1", "aa.tmp1-1"};
  for (const std::string& name : others) test::write_bytes(folder / name, {});
  {
    // That of a process that lives.
    const system::File living = system::create(folder / "a.tmp1-7x", folder / "a");
    REQUIRE(living.is_open());
    std::filesystem::remove(to_path(folder / "a.tmp1-7"));
    const system::File held = system::create(folder / "a.tmp1-7", folder / "a");
    REQUIRE(held.is_open());
    CHECK_FALSE(system::create(folder / "a.tmp1-7", folder / "a").is_open());
    CHECK(system::is_name_taken());
    write_file(folder / "a", "text");
    CHECK(std::filesystem::exists(to_path(folder / "a.tmp1-7")));
  }
  CHECK(text_of(folder / "a") == "text");
  CHECK(folder.files() == 3 + std::ssize(others));
  check_writable(folder / "a");
  CHECK(folder.files() == 2 + std::ssize(others));
}

// Windows 10 replaces the file at once. Other systems refuse, and the file stays.
TEST_CASE("the next write to a link removes what is left beside its target", "[core][file]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(to_path(folder / "far"));
  write_file(folder / "far/a", "old");
  std::error_code refused;  // links need a right that not all users have
  std::filesystem::create_symlink(to_path(folder / "far/a"), to_path(folder / "link"), refused);
  if (refused) return;
  write_file(folder / "far/a.tmp1-1", "left");
  write_file(folder / "link", "text");
  CHECK(text_of(folder / "far/a") == "text");
  CHECK(names_in(folder / "far") == std::vector<std::string>{"a"});
}

TEST_CASE("a file that another program reads is replaced as a whole, or stays", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  std::string expected = "new";
  {
    InputFile reader(folder / "a");
    try {
      write_file(folder / "a", "new");
    } catch (const DataError& error) {
      CHECK_THAT(error.what(), test::ContainsSubstring("cannot be renamed to this path: Perm"));
      expected = "old";
    }
    std::vector<uint8_t> bytes(3);
    CHECK(reader.read(bytes) == 3);
    CHECK(bytes[0] == 'o');
  }
  CHECK(text_of(folder / "a") == expected);
  CHECK(folder.files() == 1);
  {
    const system::File others = opened(folder / "a", FILE_SHARE_READ);
    check_writable(folder / "a");
    QUANTRAIN_CHECK_ERROR(
        write_file(folder / "a", "newer"), DataError, "cannot be renamed to this path");
  }
  CHECK(text_of(folder / "a") == expected);
  CHECK(folder.files() == 1);
  write_file(folder / "a", "newest");
  CHECK(text_of(folder / "a") == "newest");
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

TEST_CASE("files inside of a folder are not looked for elsewhere", "[core][file]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(to_path(folder / "model/part"));
  write_file(folder / "outside", "text");
  write_file(folder / "model/part/w", "0123456789");
  const system::Inside inside = system::open_inside(folder / "model", {"part", "w"});
  REQUIRE(inside.file.is_open());
  CHECK(inside.is_regular);
  CHECK(inside.size == 10);
  std::vector<uint8_t> bytes(4);
  CHECK(system::read_at(inside.file, 6, bytes));
  CHECK(bytes == std::vector<uint8_t>{'6', '7', '8', '9'});
  CHECK_FALSE(system::read_at(inside.file, 7, bytes));
  CHECK(system::open_inside(folder / "model", {"part", "w"}).id == inside.id);
  CHECK(system::open_inside(folder / "model/", {"part", "w"}).id == inside.id);
  CHECK_FALSE(system::open_inside(folder / "model", {"part"}).is_regular);
  using Parts = std::vector<std::string>;
  for (const Parts& parts : {Parts{"..\\outside"},
                             Parts{".. ", "outside"},
                             Parts{"... ", "outside"},
                             Parts{"part", "w:stream"},
                             Parts{"C:outside"},
                             Parts{"NUL"},
                             Parts{"part", "w "},
                             Parts{""}}) {
    INFO(parts.front());
    const system::Inside other = system::open_inside(folder / "model", parts);
    CHECK_FALSE((other.file.is_open() && other.is_regular));
  }
}

TEST_CASE("the arguments of main are UTF-8", "[core][process]") {
  const char* const values[] = {"program", kFarName.c_str(), nullptr};
  const system::Arguments arguments(2, values);
  CHECK(arguments.count() == 2);
  CHECK(arguments.values()[1] == kFarName);
  CHECK(arguments.values()[2] == nullptr);
}

}  // namespace quantrain
