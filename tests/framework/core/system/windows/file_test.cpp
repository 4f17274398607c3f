#include "framework/core/file.hpp"

#include <windows.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/path.hpp"
#include "framework/core/system/file.hpp"
#include "framework/core/system/windows/wide.hpp"
#include "tests/catch.hpp"
#include "tests/system.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::TemporaryFolder;
using test::text_of;

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

/// Returns false if this user may make no links, or the system has none, as Wine.
bool make_link(const std::string& target, const std::string& link) {
  constexpr DWORD kWithoutRight = 2;  // SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE
  const std::wstring name = system::to_wide(link);
  ::CreateSymbolicLinkW(name.c_str(), system::to_wide(target).c_str(), kWithoutRight);
  const bool is_made = ::GetFileAttributesW(name.c_str()) != INVALID_FILE_ATTRIBUTES;
  if (!is_made) test::left_out_on_windows("no links can be made here");
  return is_made;
}

std::string with_slashes(std::string path) {
  for (char& c : path) c = c == '\\' ? '/' : c;
  return path;
}

}  // namespace

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

TEST_CASE("the next write to a link removes what is left beside its target", "[core][file]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(to_path(folder / "far"));
  write_file(folder / "far/a", "old");
  if (!make_link(folder / "far/a", folder / "link")) return;
  write_file(folder / "far/a.tmp1-1", "left");
  write_file(folder / "link", "text");
  CHECK(text_of(folder / "far/a") == "text");
  CHECK(names_in(folder / "far") == std::vector<std::string>{"a"});
}

TEST_CASE("an append through a link to nothing makes the file, unless it fails", "[core][file]") {
  const TemporaryFolder folder;
  if (!make_link(folder / "far", folder / "link")) return;
  const test::GuardedMemory memory = test::guarded_memory(1, true);
  CHECK_FALSE(system::append(folder / "link", {memory.first, memory.bytes + 1}));
  test::release(memory);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"link"});
  CHECK(system::append(folder / "link", "text"));
  CHECK(text_of(folder / "far") == "text");
}

// Windows 10 replaces the file at once. Other systems refuse, and the file stays.
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

TEST_CASE("paths in capital letters, and with drives, lead to the same file", "[core][path]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(to_path(folder / "Part"));
  write_file(folder / "Part/a", "text");
  CHECK(resolved(folder / "PART/A") == resolved(with_slashes(folder / "Part/a")));
  CHECK(resolved(folder / "PART/b") == resolved(folder / "Part/./b"));
  CHECK(resolved("C:\\").size() == 3);
  CHECK(exists("NUL"));
  QUANTRAIN_CHECK_ERROR(make_folders("?:/a"), DataError, "the folder cannot be made: ");
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

}  // namespace quantrain
