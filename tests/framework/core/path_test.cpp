#include "framework/core/path.hpp"

#include <string>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "tests/catch.hpp"
#include "tests/far_folder.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {

using test::kFarName;
using test::TemporaryFolder;

TEST_CASE("a path leads to a file, to a folder or nowhere", "[core][path]") {
  const test::FarFolder far;
  const TemporaryFolder near;
  for (const std::string& folder : {near.path(), far.path()}) {
    CAPTURE(folder);
    const std::string path = folder + "/" + kFarName;
    CHECK(exists(folder));
    CHECK(is_folder(folder));
    CHECK(is_name_taken(folder));
    CHECK_FALSE(exists(path));
    CHECK_FALSE(is_folder(path));
    CHECK_FALSE(is_name_taken(path));
    CHECK_FALSE(exists(path + "/a"));
    write_file(path, "text");
    CHECK(exists(path));
    CHECK_FALSE(is_folder(path));
    CHECK(is_name_taken(path));
    CHECK_FALSE(exists(path + "/a"));
  }
  CHECK_FALSE(exists(""));
}

TEST_CASE("folders are made with those above them", "[core][path]") {
  const test::FarFolder far;
  const TemporaryFolder near;
  for (const std::string& folder : {near.path(), far.path()}) {
    CAPTURE(folder);
    make_folders(folder);
    make_folders(folder + "/a/" + kFarName + "/c/");
    CHECK(is_folder(folder + "/a/" + kFarName + "/c"));
    make_folders(folder + "/a");
    write_file(folder + "/file", "text");
    QUANTRAIN_CHECK_ERROR(
        make_folders(folder + "/file"), DataError, "/file: the folder cannot be made: ");
    QUANTRAIN_CHECK_ERROR(make_folders(folder + "/file/b"), DataError, "the folder cannot be made");
  }
  QUANTRAIN_CHECK_ERROR(make_folders(""), DataError, "the folder cannot be made");
}

TEST_CASE("files are renamed and removed", "[core][path]") {
  const test::FarFolder far;
  const TemporaryFolder near;
  for (const std::string& folder : {near.path(), far.path()}) {
    CAPTURE(folder);
    write_file(folder + "/a", "new");
    write_file(folder + "/b", "older");
    CHECK(rename_file(folder + "/a", folder + "/b"));
    CHECK_FALSE(rename_file(folder + "/a", folder + "/b"));
    CHECK_FALSE(exists(folder + "/a"));
    CHECK(InputFile(folder + "/b").left() == 3);
    CHECK(remove_file(folder + "/b"));
    CHECK_FALSE(remove_file(folder + "/b"));
    CHECK_FALSE(exists(folder + "/b"));
  }
}

TEST_CASE("two paths to one file are resolved to the same path", "[core][path]") {
  const test::FarFolder far;
  const TemporaryFolder near;
  for (const std::string& folder : {near.path(), far.path()}) {
    CAPTURE(folder);
    make_folders(folder + "/a");
    write_file(folder + "/b", "text");
    CHECK(resolved(folder + "/a/../b") == resolved(folder + "/b"));
    CHECK(resolved(folder + "/a/./none/c") == resolved(folder + "/a/none/c"));
    CHECK(resolved(folder + "/a") != resolved(folder + "/b"));
    CHECK(resolved(resolved(folder + "/b")) == resolved(folder + "/b"));
  }
  CHECK(resolved("a") == resolved("./a"));
}

}  // namespace quantrain
