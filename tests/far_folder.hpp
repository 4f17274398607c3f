#pragma once

#include <string>

#include "framework/core/path.hpp"
#include "tests/system.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::test {

/// A name with spaces, and letters of several languages in UTF-8.
inline const std::string kFarName =
    "Gr\xC3\xB6\xC3\x9F"
    "e \xD0\x96 \xE6\x95\xB0 \xF0\x9F\x99\x82";

/// A folder whose path has more than 260 characters, the most that Windows usually takes. It is
/// removed with this object.
class FarFolder {
 public:
  FarFolder() : path_(top_.path()) {
    for (int i = 0; i < 6; ++i) path_ += '/' + kFarName + std::string(40, 'x');
    make_folders(path_);
  }
  ~FarFolder() { remove_folder(top_.path()); }
  FarFolder(const FarFolder&) = delete;
  FarFolder& operator=(const FarFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }

 private:
  TemporaryFolder top_;
  std::string path_;
};

}  // namespace quantrain::test
