#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layers/onnx/model.hpp"

namespace quantrain::onnx {

/// Where a tensor's elements lie, as the file says it: keys such as "location", "offset", "length".
using ExternalEntries = std::vector<std::pair<std::string, std::string>>;

/// Reads elements that lie in other files of the model's own folder. A location is a relative path
/// without "..", and neither a folder on its way nor the file is a symbolic link, so that a model
/// cannot make its reader open files elsewhere. All that is read of a file is at most its size, so
/// that a small model cannot take much memory by naming one part many times.
class ExternalFiles {
 public:
  /// folder: the model's own; empty if it has none, because it was read from memory.
  ExternalFiles(std::string path, std::string folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  /// The elements of a tensor. `size` is the number of bytes that its shape and type need.
  /// Throws: DataError naming the model, the tensor and the fault.
  Bytes read(const std::string& tensor, const ExternalEntries& entries, int64_t size);
  /// Bytes of all calls of read().
  int64_t bytes() const { return bytes_; }

 private:
  std::string path_;
  std::string folder_;
  std::map<std::pair<uint64_t, uint64_t>, int64_t>
      left_;  // of each file, how many bytes may still be read
  int64_t bytes_ = 0;
};

}  // namespace quantrain::onnx
