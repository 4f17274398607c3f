// The commands of docs/guide/program.md, on the network and the images that the guide's programs
// use.
#include <cmath>
#include <fstream>
#include <string>

#include "docs/guide/shapes.hpp"
#include "tests/tools/program.hpp"

namespace quantrain {
namespace {

/// The commands of a page: indented lines.
std::vector<std::string> commands_of(const std::string& path) {
  std::ifstream page(path);
  std::vector<std::string> commands;
  for (std::string line; std::getline(page, line);) {
    for (const char* const start : {"    quantrain ", "    cc ", "    ./"}) {
      if (line.rfind(start, 0) == 0) commands.push_back(line.substr(4));
    }
  }
  return commands;
}

void write_images(const std::string& folder) {
  const Dataset images = shapes(160, 1);
  const auto height = static_cast<uint32_t>(images.image_shape()[0]);
  const auto width = static_cast<uint32_t>(images.image_shape()[1]);
  for (int64_t i = 0; i < images.size(); ++i) {
    const std::string name = folder + '/' + std::to_string(images.label(i));
    std::filesystem::create_directories(name);
    const auto bytes = images.image(i);
    test::write_bytes(name + '/' + std::to_string(i) + ".png",
                      test::png(height, width, {bytes.begin(), bytes.end()}, 0));
  }
}

double number_after(const std::string& text, const std::string& name) {
  const size_t at = text.find(name);
  INFO(text);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + name.size()));
}

}  // namespace

TEST_CASE("the guide's commands take an .onnx file and images to C99", "[tools]") {
  const test::TemporaryFolder folder;
  const std::string guide = QUANTRAIN_TEST_DATA "/../../docs/guide/";
  test::write_bytes(folder / "shapes.onnx", test::read_bytes(guide + "shapes.onnx"));
  write_images(folder / "images");
  const std::vector<std::string> commands = commands_of(guide + "program.md");
  REQUIRE(commands.size() == 10);  // four to C99, two to test it, four against a loss
  std::string out;
  for (const std::string& command : commands) {
    const std::string call = "cd '" + folder.path() +
                             "' && quantrain() { '" QUANTRAIN_PROGRAM "' \"$@\"; } && { " +
                             command + "; } >out 2>&1 </dev/null";
    const int status = std::system(call.c_str());
    const std::string printed = test::text_of(folder / "out");
    INFO(command << '\n' << printed);
    REQUIRE(status == 0);
    out += printed;
  }
  const double before = number_after(out, "accuracy float");
  const double after = number_after(out, "accuracy integer");
  CHECK(before > 90.0);
  CHECK(std::fabs(before - after) < 2.0);
  CHECK_THAT(out, test::ContainsSubstring("100 of 100 equal"));
}

}  // namespace quantrain
