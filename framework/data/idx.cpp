#include "framework/data/idx.hpp"

#include <zlib.h>

#include <algorithm>
#include <memory>
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
  explicit PlainSource(const std::string& path) : file_(path) {}

  size_t read(std::span<uint8_t> out) override { return file_.read(out); }
  int64_t left() const override { return file_.left(); }

 private:
  InputFile file_;
};

class GzipSource : public Source {
 public:
  explicit GzipSource(const std::string& path) : path_(path), file_(path), in_(kChunk) {
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
      if (stream_.avail_in == 0) {
        stream_.avail_in = static_cast<uInt>(file_.read(in_));
        stream_.next_in = in_.data();
      }
      const size_t room = std::min(out.size() - count, kChunk);
      stream_.next_out = out.data() + count;
      stream_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      count += room - stream_.avail_out;
      if (status == Z_STREAM_END) {
        ended_ = true;
        if (compressed_left() > 0)
          throw DataError(
              kWhere, path_, ": ", compressed_left(), " bytes follow the compressed data");
      } else if (status == Z_BUF_ERROR && compressed_left() == 0) {
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
  int64_t left() const override { return (compressed_left() + 1) * kMaxCompression; }

 private:
  static constexpr size_t kChunk = size_t{1} << 20;

  int64_t compressed_left() const { return int64_t{stream_.avail_in} + file_.left(); }

  std::string path_;
  InputFile file_;
  std::vector<uint8_t> in_;
  z_stream stream_{};
  bool ended_ = false;
};

bool is_gzipped(const std::string& path) {
  uint8_t magic[2];
  return InputFile(path).read(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
}

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
  const std::unique_ptr<Source> source =
      is_gzipped(path) ? std::unique_ptr<Source>(std::make_unique<GzipSource>(path))
                       : std::make_unique<PlainSource>(path);
  return read(path, *source);
}

}  // namespace quantrain
