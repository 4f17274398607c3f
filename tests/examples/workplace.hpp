#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "framework/core/file.hpp"
#include "framework/core/random.hpp"
#include "tests/catch.hpp"

// Runs programs in a temporary folder, to test them.
namespace quantrain::test {

namespace fs = std::filesystem;

inline void append_big_endian(std::string& text, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xff);
}

/// Ten classes that are easy to tell apart: class c is a bright square at one of ten positions,
/// plus noise.
inline void write_images(const fs::path& folder,
                         const std::string& prefix,
                         uint32_t count,
                         uint64_t seed) {
  std::string images;
  std::string labels;
  append_big_endian(images, 0x803);
  for (const uint32_t extent : {count, 28u, 28u}) append_big_endian(images, extent);
  append_big_endian(labels, 0x801);
  append_big_endian(labels, count);
  for (uint32_t i = 0; i < count; ++i) {
    Random random(seed, i);
    const int64_t label = random.below(10);
    const int64_t top = 2 + label / 4 * 9;
    const int64_t left = 1 + label % 4 * 7;
    for (int64_t pixel = 0; pixel < 28 * 28; ++pixel) {
      const int64_t y = pixel / 28 - top;
      const int64_t x = pixel % 28 - left;
      const bool inside = y >= 0 && y < 6 && x >= 0 && x < 6;
      images += static_cast<char>(random.below(inside ? 256 : 32));
    }
    labels += static_cast<char>(label);
  }
  write_file((folder / (prefix + "-images-idx3-ubyte")).string(), images);
  write_file((folder / (prefix + "-labels-idx1-ubyte")).string(), labels);
}

/// A temporary folder with a small data set in "data".
class Workplace {
 public:
  Workplace() {
    std::string pattern = (fs::temp_directory_path() / "quantrain_examples_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    fs::create_directory(folder_ / "data");
    write_images(folder_ / "data", "train", 96, 1);
    write_images(folder_ / "data", "t10k", 50, 2);
  }
  ~Workplace() { fs::remove_all(folder_); }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Names of all files except "data" and the two files that start() writes, "out" and "err".
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name != "data" && name != "out" && name != "err") names.push_back(name);
    }
    return names;
  }

  /// Runs a program and returns its exit status; its output is in "out" and "err". `environment`
  /// sets environment variables, with a space after each: "NAME=value ".
  int start(const std::string& program,
            const std::string& flags,
            const std::string& environment = "") const {
    const std::string command = environment + QUANTRAIN_EXAMPLES + '/' + program + ' ' + flags +
                                " > '" + path("out") + "' 2> '" + path("err") + '\'';
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// Like start(), but the program uses this data set, unless the flags name another one.
  int run(const std::string& program, const std::string& flags) const {
    return start(program, with_data(flags));
  }
  /// Checks that a run fails with status 1 and one line on standard error, which names the program
  /// and contains this text.
  void check_start_fails(const std::string& program,
                         const std::string& flags,
                         const std::string& text,
                         const std::string& environment = "") const {
    INFO(program << ' ' << flags);
    CHECK(start(program, flags, environment) == 1);
    const std::string error = read("err");
    CHECK_THAT(error, ContainsSubstring(text));
    CHECK(error.rfind(program + ": ", 0) == 0);
    CHECK(std::count(error.begin(), error.end(), '\n') == 1);
    CHECK(error.back() == '\n');
  }
  void check_fails(const std::string& program,
                   const std::string& flags,
                   const std::string& text) const {
    check_start_fails(program, with_data(flags), text);
  }

 private:
  std::string with_data(const std::string& flags) const {
    const bool has_data = flags.find("--data") != std::string::npos;
    return has_data ? flags : "--data '" + path("data") + "' " + flags;
  }

  fs::path folder_;
};

}  // namespace quantrain::test
