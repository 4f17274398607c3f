#include "layers/onnx/external_data.hpp"

#include <charconv>
#include <string_view>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/system/file.hpp"

namespace quantrain::onnx {
namespace {

/// A fault, without the names that the caller adds.
struct Fault {
  std::string text;
};

int64_t number(std::string_view key, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw Fault{std::string(key) + " \"" + std::string(text) + "\" is not a size in bytes"};
  return value;
}

/// The parts of a relative path that does not climb.
std::vector<std::string> parts_of(const std::string& location) {
  if (location.empty()) throw Fault{"has no location"};
  if (location.find('\0') != std::string::npos) throw Fault{"its location has a zero byte"};
  if (location.front() == '/') throw Fault{"its location " + location + " is absolute"};
  std::vector<std::string> parts;
  for (size_t at = 0; at <= location.size();) {
    const size_t slash = std::min(location.find('/', at), location.size());
    std::string part = location.substr(at, slash - at);
    if (part == "..") throw Fault{"its location " + location + " climbs out of the folder"};
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
    at = slash + 1;
  }
  if (parts.empty()) throw Fault{"its location " + location + " names no file"};
  return parts;
}

/// Opens a file below the folder, one part after the other, and follows no link.
system::Inside open_below(const std::string& folder, const std::string& location) {
  system::Inside inside = system::open_inside(folder, parts_of(location));
  if (inside.is_link) throw Fault{"its location " + location + " is a symbolic link"};
  if (!inside.file.is_open()) throw Fault{"cannot open " + location + ": " + system::last_error()};
  return inside;
}

}  // namespace

Bytes ExternalFiles::read(const std::string& tensor, const ExternalEntries& entries, int64_t size) {
  try {
    std::string location;
    int64_t offset = 0;
    int64_t length = size;
    for (const auto& [key, value] : entries) {
      if (key == "location") location = value;
      if (key == "offset") offset = number(key, value);
      if (key == "length") length = number(key, value);
    }
    if (length != size)
      throw Fault{"has " + std::to_string(length) + " bytes, but its shape and type need " +
                  std::to_string(size)};
    if (folder_.empty()) throw Fault{"lies in another file, and the model was read from memory"};
    const system::Inside inside = open_below(folder_, location);
    if (!inside.is_regular) throw Fault{location + " is not a regular file"};
    if (offset > inside.size || size > inside.size - offset)
      throw Fault{"ends after " + location + ", which has " + std::to_string(inside.size) +
                  " bytes"};
    int64_t& left = left_.try_emplace(inside.id, inside.size).first->second;
    if (size > left)
      throw Fault{"shares bytes of " + location + " with other tensors: more is read than it has"};
    left -= size;
    bytes_ += size;

    auto owner = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(size));
    if (!system::read_at(inside.file, offset, *owner)) throw Fault{"cannot read " + location};
    const std::span<const uint8_t> view = *owner;
    return {std::move(owner), view};
  } catch (const Fault& fault) {
    throw DataError("onnx", path_, ": external data of the tensor \"", tensor, "\": ", fault.text);
  }
}

}  // namespace quantrain::onnx
