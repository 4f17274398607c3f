#include "layers/onnx/external_data.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "framework/core/error.hpp"

namespace quantrain::onnx {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

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
Descriptor open_below(const std::string& folder, const std::string& location) {
  const std::vector<std::string> parts = parts_of(location);
  Descriptor at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (size_t i = 0; at.get() >= 0 && i < parts.size(); ++i) {
    const int kind = i + 1 < parts.size() ? O_DIRECTORY : O_NONBLOCK;
    at = Descriptor(::openat(at.get(), parts[i].c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
  }
  if (at.get() < 0) {
    if (errno == ELOOP) throw Fault{"its location " + location + " is a symbolic link"};
    throw Fault{"cannot open " + location + ": " + std::strerror(errno)};
  }
  return at;
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
    const Descriptor file = open_below(folder_, location);
    struct stat info {};
    if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
      throw Fault{location + " is not a regular file"};
    if (offset > info.st_size || size > info.st_size - offset)
      throw Fault{"ends after " + location + ", which has " + std::to_string(info.st_size) +
                  " bytes"};
    int64_t& left = left_.try_emplace({info.st_dev, info.st_ino}, info.st_size).first->second;
    if (size > left)
      throw Fault{"shares bytes of " + location + " with other tensors: more is read than it has"};
    left -= size;
    bytes_ += size;

    auto owner = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(size));
    for (int64_t done = 0; done < size;) {
      const ssize_t n = ::pread(
          file.get(), owner->data() + done, static_cast<size_t>(size - done), offset + done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) throw Fault{"cannot read " + location};
      done += n;
    }
    const std::span<const uint8_t> view = *owner;
    return {std::move(owner), view};
  } catch (const Fault& fault) {
    throw DataError("onnx", path_, ": external data of the tensor \"", tensor, "\": ", fault.text);
  }
}

}  // namespace quantrain::onnx
