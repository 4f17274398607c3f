// Writes a saved integer network as C99: NAME.h, NAME.c and, with --test, a program that tests
// them.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/data/dataset.hpp"
#include "framework/integer/integer_model.hpp"
#include "quant/export/c99/export_c99.hpp"

using namespace quantrain;

int main(int argc, char** argv) try {
  CLI::App app{
      "Writes a saved integer network as C99, for devices and compilers that quantrain does not "
      "support."};
  std::string model_path, folder = ".", data;
  C99Options options;
  int64_t test = 0;
  bool unpacked = false;
  app.add_option("model", model_path, "network that IntegerModel::save() wrote")->required();
  app.add_option("--output", folder, "folder for the files");
  app.add_option("--name", options.name, "prefix of names and files");
  app.add_option(
         "--test", test, "also writes NAME_test.c with the first N images of the test split")
      ->check(CLI::Range(int64_t{0}, int64_t{1000000}));
  app.add_option("--data", data, "folder with the IDX files that the test takes its images from");
  app.add_option("--section", options.section, "section of the tables, for a linker script");
  app.add_flag("--unpacked", unpacked, "store each weight in a byte, even with 4 bits or fewer");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (test > 0 && data.empty())
    throw DataError("export_c99", "--test needs --data FOLDER, where its images are");
  options.pack_weights = !unpacked;

  const auto model = IntegerModel::load(model_path);
  const C99Sources sources = export_c99(model.program(), options);
  std::string test_text;
  if (test > 0) {
    const Dataset images = Dataset::mnist(data, Split::kTest).first(test);
    std::vector<uint8_t> codes;
    for (int64_t i = 0; i < images.size(); ++i) {
      const auto image = images.image(i);
      codes.insert(codes.end(), image.begin(), image.end());
    }
    test_text = c99_test(model.program(), codes, options);
  }
  write_c99(folder, sources, test_text);
  std::printf("%s", sources.plan.c_str());
  std::printf("%s/%s.h, %s.c%s\n",
              folder.c_str(),
              options.name.c_str(),
              options.name.c_str(),
              test > 0 ? (", " + options.name + "_test.c").c_str() : "");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
