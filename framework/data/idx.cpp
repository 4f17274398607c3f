#include "framework/data/idx.hpp"

#include <zlib.h>

#include <algorithm>
#include <span>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"

namespace quantrain {
namespace {

constexpr const char* kIdx = "idx";
constexpr uint8_t kUnsignedByte = 0x08;
// The highest compression that deflate can reach: 258 bytes in two bits.
constexpr int64_t kMaxCompression = 1032;

class Source {
 public:
  virtual ~Source() = default;
  /// Returns the number of bytes read, which is less than out.size() only at the end.
  virtual size_t read(std::span<uint8_t> out) = 0;
  /// Upper bound on the number of bytes that are left to read.
  virtual int64_t left() const = 0;
  /// Number of bytes to allocate in the first step, before any have been read.
  virtual size_t step() const = 0;
};

class PlainSource : public Source {
 public:
  explicit PlainSource(InputFile file) : file_(std::move(file)) {}

  size_t read(std::span<uint8_t> out) override { return file_.read(out); }
  int64_t left() const override { return file_.left(); }
  // All bytes at once, because the file is known to have that many.
  size_t step() const override { return static_cast<size_t>(file_.left()); }

 private:
  InputFile file_;
};

class GzipSource : public Source {
 public:
  GzipSource(const std::string& path, InputFile file)
      : path_(path), file_(std::move(file)), in_(kChunk) {
    constexpr int kGzipWithLargestWindow = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipWithLargestWindow) != Z_OK)
      throw DataError(kIdx, path_, ": zlib could not be initialized");
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
              kIdx, path_, ": ", compressed_left(), " bytes follow the compressed data");
      } else if (status == Z_BUF_ERROR && compressed_left() == 0) {
        throw DataError(kIdx, path_, ": truncated: the compressed data end early");
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        throw DataError(kIdx,
                        path_,
                        ": the compressed data are damaged: ",
                        stream_.msg ? stream_.msg : "unknown error");
      }
    }
    return count;
  }
  int64_t left() const override { return (compressed_left() + 1) * kMaxCompression; }
  size_t step() const override { return kChunk; }

 private:
  static constexpr size_t kChunk = size_t{1} << 20;

  int64_t compressed_left() const { return int64_t{stream_.avail_in} + file_.left(); }

  std::string path_;
  InputFile file_;
  std::vector<uint8_t> in_;
  z_stream stream_{};
  bool ended_ = false;
};

// Allocates in steps, whatever the header says. The first step is at most source.step() bytes.
// Each later step at most doubles the bytes read so far, or adds source.step() if that is more.
std::vector<uint8_t> read_bytes(int64_t size, Source& source) {
  std::vector<uint8_t> bytes;
  const auto wanted = static_cast<size_t>(size);
  while (bytes.size() < wanted) {
    const size_t begin = bytes.size();
    bytes.resize(std::min(wanted, begin + std::max(begin, source.step())));
    const size_t got = source.read(std::span(bytes).subspan(begin));
    if (got == bytes.size() - begin) continue;
    bytes.resize(begin + got);
    break;
  }
  return bytes;
}

IdxArray read(const std::string& path, Source& source, int64_t limit) {
  uint8_t magic[4];
  const size_t header = source.read(magic);
  if (header < sizeof magic)
    throw DataError(kIdx, path, ": truncated: ", header, " bytes, too short for any header");
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedByte || magic[3] == 0 ||
      magic[3] > Shape::kMaxRank) {
    throw DataError(kIdx,
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
      throw DataError(kIdx, path, ": truncated in extent ", axis, " of ", int{magic[3]});
    extents.push_back(int64_t{big_endian[0]} << 24 | big_endian[1] << 16 | big_endian[2] << 8 |
                      big_endian[3]);
  }
  Shape shape;
  try {
    shape = Shape(extents);
  } catch (const ShapeError& error) {
    throw DataError(kIdx, path, ": ", error.what());
  }
  if (shape.elements() > source.left()) {
    throw DataError(kIdx,
                    path,
                    ": truncated: shape ",
                    shape,
                    " needs ",
                    shape.elements(),
                    " bytes, at most ",
                    source.left(),
                    " follow");
  }
  if (shape.elements() > limit) {
    throw DataError(kIdx,
                    path,
                    ": shape ",
                    shape,
                    " needs ",
                    shape.elements(),
                    " bytes, the limit is ",
                    limit,
                    "; read it with a larger limit if you trust the file");
  }
  IdxArray array{shape, read_bytes(shape.elements(), source)};
  const auto got = static_cast<int64_t>(array.bytes.size());
  if (got < shape.elements()) {
    throw DataError(kIdx,
                    path,
                    ": truncated: shape ",
                    shape,
                    " needs ",
                    shape.elements(),
                    " bytes, ",
                    got,
                    " follow");
  }
  uint8_t more = 0;  // reading past the end also makes zlib verify the checksum
  if (source.read({&more, 1}) != 0) {
    throw DataError(
        kIdx, path, ": longer than the ", array.bytes.size(), " bytes of shape ", shape);
  }
  return array;
}

}  // namespace

int64_t unpacked_limit(int64_t file_bytes) { return (int64_t{256} << 20) + 16 * file_bytes; }

IdxArray read_idx_u8(const std::string& path, std::optional<int64_t> limit) {
  InputFile file(path);
  const int64_t size = file.left();
  uint8_t magic[2];
  const bool gzipped = file.read(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  file.rewind();
  if (!gzipped) {
    PlainSource source(std::move(file));
    return read(path, source, limit.value_or(size));
  }
  GzipSource source(path, std::move(file));
  return read(path, source, limit.value_or(unpacked_limit(size)));
}

}  // namespace quantrain
