#include "framework/io/format.hpp"

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

void check_entry(const std::string& path,
                 const TensorFile& file,
                 const char* key,
                 const std::string& expected) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) {
    throw DataError(
        "load", path, ": the file does not say its ", key, "; expected \"", expected, "\"");
  }
  if (found->second != expected) {
    throw DataError(
        "load", path, ": ", key, " is \"", found->second, "\", expected \"", expected, "\"");
  }
}

}  // namespace

void set_format(TensorFile& file, const std::string& format, const std::string& version) {
  file.metadata["format"] = format;
  file.metadata["version"] = version;
  file.metadata["layout"] = kWeightLayout;
}

void check_format(const std::string& path,
                  const TensorFile& file,
                  const std::string& format,
                  const std::string& version) {
  check_entry(path, file, "layout", kWeightLayout);
  check_entry(path, file, "format", format);
  check_entry(path, file, "version", version);
}

}  // namespace quantrain
