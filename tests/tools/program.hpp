#pragma once

#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/file.hpp"
#include "framework/core/random.hpp"
#include "layers/network/network_file.hpp"
#include "layers/onnx/import_onnx.hpp"
#include "tests/catch.hpp"
#include "tests/framework/data/idx_files.hpp"
#include "tests/framework/data/npy_files.hpp"
#include "tests/framework/data/png_files.hpp"
#include "tests/temporary_folder.hpp"

// Starts the program quantrain on small models and data.
namespace quantrain::test {

/// What a run of the program left.
struct Ended {
  int status = 0;
  std::string out;
  std::string err;
};

inline const std::string kExports = QUANTRAIN_TEST_DATA "/exports/";
inline const std::string kTflite = QUANTRAIN_TEST_DATA "/../../docs/guide/lines.tflite";

/// A folder with models of each kind, and data of each kind that fits them.
class Bench {
 public:
  static constexpr int64_t kSamples = 24;

  Bench() {
    const Network net = import_onnx(kExports + "ds_cnn.onnx");
    save_network(net, at("float.safetensors"));
    make_data("big", 13, 10, 6);
    make_data("small", 8, 8, 2);
    make_table();
    const Ended ended =
        run("quantize " + at("float.safetensors") + " --data " + at("big/idx") + " --output " +
            at("integer.safetensors") + " --network " + at("prepared.safetensors"));
    INFO(ended.err);
    REQUIRE(ended.status == 0);
  }

  std::string at(const std::string& name) const { return folder_ / name; }

  /// Runs the program in the folder. `before` and `after` are parts of the shell's command.
  Ended run(const std::string& arguments,
            const std::string& before = "",
            const std::string& after = "") const {
    const std::string command = "cd '" + folder_.path() + "' && (" + before +
                                " '" QUANTRAIN_PROGRAM "' " + arguments + ' ' + after +
                                ") >out 2>err </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(at("out")), text_of(at("err"))};
  }

  /// Names of all files below the folder, without what run() writes.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (name != "out" && name != "err") names.push_back(entry.path().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  void make_data(const std::string& name, uint32_t height, uint32_t width, int64_t classes) {
    namespace fs = std::filesystem;
    fs::create_directories(at(name + "/idx"));
    Random random(height);
    const size_t pixels = size_t{height} * width;
    std::vector<uint8_t> images;
    std::vector<uint8_t> labels;
    for (int64_t i = 0; i < kSamples; ++i) {
      labels.push_back(static_cast<uint8_t>(i % classes));
      for (size_t k = 0; k < pixels; ++k) images.push_back(static_cast<uint8_t>(random.below(256)));
    }
    const auto n = static_cast<uint32_t>(kSamples);
    for (const std::string part : {"train", "t10k"}) {
      write_bytes(at(name + "/idx/" + part + "-images-idx3-ubyte"),
                  idx({n, height, width}, images));
      write_bytes(at(name + "/idx/" + part + "-labels-idx1-ubyte"), idx({n}, labels));
    }
    const std::string size = std::to_string(height) + ", " + std::to_string(width) + ")";
    write_bytes(at(name + "/images.npy"), npy("|u1", "(24, " + size, images));
    std::vector<float> floats;
    for (const uint8_t byte : images) floats.push_back(static_cast<float>(byte) / 255.0f);
    write_bytes(at(name + "/nchw.npy"), npy("<f4", "(24, 1, " + size, bytes_of(floats)));
    std::vector<int32_t> numbers(labels.begin(), labels.end());
    write_bytes(at(name + "/labels.npy"), npy("<i4", "(24,)", bytes_of(numbers)));
    write_bytes(at(name + "/images.bin"), images);
    for (int64_t i = 0; i < kSamples; ++i) {
      const std::string folder = at(name + "/png/class" + std::to_string(i % classes));
      fs::create_directories(folder);
      const auto first = images.begin() + i * static_cast<int64_t>(pixels);
      write_bytes(folder + "/" + std::to_string(i) + ".png",
                  png(height, width, {first, first + static_cast<int64_t>(pixels)}, 0));
    }
  }

  void make_table() {
    std::string text = "a,b,c,d,e,f,g,h,i,kind\n";
    Random random(9);
    for (int64_t row = 0; row < kSamples; ++row) {
      for (int column = 0; column < 9; ++column)
        text += std::to_string(random.uniform(-1.0f, 1.0f)) + ',';
      text += row % 3 == 0 ? "\"left, up\"\n" : row % 3 == 1 ? "middle\n" : "right\n";
    }
    write_file(at("table.csv"), text);
  }

  TemporaryFolder folder_;
};

/// One for all tests of the process.
inline const Bench& bench() {
  static const Bench made;
  return made;
}

/// Runs the program, which must end with this status.
inline Ended ends_with(int status, const std::string& arguments) {
  Ended ended = bench().run(arguments);
  INFO(arguments << '\n' << ended.out << ended.err);
  REQUIRE(ended.status == status);
  return ended;
}

/// What --json prints of a call that ends well.
inline nlohmann::json report_of(const std::string& arguments) {
  return nlohmann::json::parse(ends_with(0, arguments + " --json").out);
}

}  // namespace quantrain::test
