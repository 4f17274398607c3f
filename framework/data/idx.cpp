#include "framework/data/idx.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <span>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "idx";
constexpr uint8_t kUnsignedByte = 0x08;
// Deflate cannot do better: 258 bytes from two bits.
constexpr int64_t kMaxCompression = 1032;

class Source {
 public:
  virtual ~Source() = default;
  /// Number of bytes read; fewer than asked for only at the end.
  virtual size_t read(std::span<uint8_t> out) = 0;
  /// Upper bound of what is left to read.
  virtual int64_t left() const = 0;
};

class PlainSource : public Source {
 public:
  explicit PlainSource(std::span<const uint8_t> file) : file_(file) {}

  size_t read(std::span<uint8_t> out) override {
    const size_t count = std::min(out.size(), file_.size());
    std::copy_n(file_.begin(), count, out.begin());
    file_ = file_.subspan(count);
    return count;
  }
  int64_t left() const override { return static_cast<int64_t>(file_.size()); }

 private:
  std::span<const uint8_t> file_;
};

class GzipSource : public Source {
 public:
  GzipSource(const std::string& path, std::span<const uint8_t> file) : path_(path), file_(file) {
    constexpr int kGzipWithLargestWindow = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipWithLargestWindow) != Z_OK)
      throw DataError(kWhere, path_, ": zlib does not start");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  size_t read(std::span<uint8_t> out) override {
    size_t count = 0;
    while (count < out.size() && !ended_) {
      const size_t in = std::min(file_.size(), kChunk);
      const size_t room = std::min(out.size() - count, kChunk);
      stream_.next_in = const_cast<Bytef*>(file_.data());  // zlib reads only, but does not say so
      stream_.avail_in = static_cast<uInt>(in);
      stream_.next_out = out.data() + count;
      stream_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      file_ = file_.subspan(in - stream_.avail_in);
      count += room - stream_.avail_out;
      if (status == Z_STREAM_END) {
        ended_ = true;
        if (!file_.empty())
          throw DataError(kWhere, path_, ": ", file_.size(), " bytes follow the compressed data");
      } else if (status == Z_BUF_ERROR && file_.empty()) {
        throw DataError(kWhere, path_, ": truncated: the compressed data end early");
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        throw DataError(kWhere,
                        path_,
                        ": the compressed data are damaged: ",
                        stream_.msg ? stream_.msg : "unknown error");
      }
    }
    return count;
  }
  int64_t left() const override {
    return (static_cast<int64_t>(file_.size()) + 1) * kMaxCompression;
  }

 private:
  static constexpr size_t kChunk = size_t{1} << 20;

  std::string path_;
  std::span<const uint8_t> file_;
  z_stream stream_{};
  bool ended_ = false;
};

IdxArray read(const std::string& path, Source& source) {
  uint8_t magic[4];
  const size_t header = source.read(magic);
  if (header < sizeof magic)
    throw DataError(kWhere, path, ": truncated: ", header, " bytes, too short for any header");
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedByte || magic[3] == 0 ||
      magic[3] > Shape::kMaxRank) {
    throw DataError(kWhere,
                    path,
                    ": magic bytes ",
                    int{magic[0]},
                    ' ',
                    int{magic[1]},
                    ' ',
                    int{magic[2]},
                    ' ',
                    int{magic[3]},
                    ", expected 0 0 8 (unsigned bytes) and a rank of 1 to ",
                    Shape::kMaxRank);
  }
  std::vector<int64_t> extents;
  for (int axis = 0; axis < magic[3]; ++axis) {
    uint8_t big_endian[4];
    if (source.read(big_endian) < sizeof big_endian)
      throw DataError(kWhere, path, ": truncated in extent ", axis, " of ", int{magic[3]});
    extents.push_back(int64_t{big_endian[0]} << 24 | big_endian[1] << 16 | big_endian[2] << 8 |
                      big_endian[3]);
  }
  Shape shape;
  try {
    shape = Shape(extents);
  } catch (const ShapeError& error) {
    throw DataError(kWhere, path, ": ", error.what());
  }
  if (shape.elements() > source.left()) {
    throw DataError(kWhere,
                    path,
                    ": truncated: shape ",
                    shape,
                    " needs ",
                    shape.elements(),
                    " bytes, at most ",
                    source.left(),
                    " follow");
  }
  IdxArray array{shape, std::vector<uint8_t>(static_cast<size_t>(shape.elements()))};
  const size_t got = source.read(array.bytes);
  if (got < array.bytes.size()) {
    throw DataError(kWhere,
                    path,
                    ": truncated: shape ",
                    shape,
                    " needs ",
                    array.bytes.size(),
                    " bytes, ",
                    got,
                    " follow");
  }
  uint8_t more = 0;  // reading past the end also lets zlib compare its checksum
  if (source.read({&more, 1}) != 0) {
    throw DataError(
        kWhere, path, ": longer than the ", array.bytes.size(), " bytes of shape ", shape);
  }
  return array;
}

}  // namespace

IdxArray read_idx_u8(const std::string& path) {
  const std::vector<uint8_t> file = read_file(path, std::numeric_limits<int64_t>::max());
  if (file.size() >= 2 && file[0] == 0x1f && file[1] == 0x8b) {
    GzipSource source(path, file);
    return read(path, source);
  }
  PlainSource source(file);
  return read(path, source);
}

}  // namespace quantrain
