#include "framework/data/idx.hpp"

#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/framework/data/idx_files.hpp"
#include "tests/system.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::counting;
using test::gzip;
using test::idx;
using test::TemporaryFolder;

void check_idx_rejected(const std::vector<uint8_t>& file, const std::string& text) {
  const TemporaryFolder folder;
  test::write_bytes(folder / "hostile", file);
  QUANTRAIN_CHECK_ERROR(read_idx_u8(folder / "hostile"), DataError, text);
  QUANTRAIN_CHECK_ERROR(read_idx_u8(folder / "hostile"), DataError, "/hostile: ");
}

}  // namespace

TEST_CASE("a plain or gzipped IDX file gives its shape and bytes", "[data][idx]") {
  const TemporaryFolder folder;
  const std::vector<uint8_t> file = idx({3, 50, 2}, counting(300));
  test::write_bytes(folder / "plain", file);
  test::write_bytes(folder / "gzipped", gzip(file));
  for (const char* name : {"plain", "gzipped"}) {
    const IdxArray array = read_idx_u8(folder / name);
    CHECK(array.shape == Shape{3, 50, 2});
    CHECK(array.bytes == counting(300));
  }
}

TEST_CASE("an IDX file may be empty or larger than zlib's buffers", "[data][idx]") {
  const TemporaryFolder folder;
  test::write_bytes(folder / "empty", gzip(idx({0, 28, 28}, {})));
  CHECK(read_idx_u8(folder / "empty").shape == Shape{0, 28, 28});
  const std::vector<uint8_t> bytes = counting(3'000'001);
  test::write_bytes(folder / "large", gzip(idx({3'000'001}, bytes)));
  CHECK(read_idx_u8(folder / "large").bytes == bytes);
}

TEST_CASE("an IDX file that is truncated anywhere is rejected", "[data][idx]") {
  const TemporaryFolder folder;
  const std::vector<uint8_t> plain = idx({2, 3}, counting(6));
  for (const std::vector<uint8_t>& file : {plain, gzip(plain)}) {
    for (size_t size = 0; size < file.size(); ++size) {
      test::write_bytes(folder / "cut", std::span(file).first(size));
      QUANTRAIN_CHECK_ERROR(read_idx_u8(folder / "cut"), DataError, "truncated");
    }
  }
}

TEST_CASE("the error about an IDX file of the wrong length gives both lengths", "[data][idx]") {
  check_idx_rejected({}, "truncated: 0 bytes, too short for any header");
  check_idx_rejected(idx({2, 3}, counting(5)), "shape [2, 3] needs 6 bytes, at most 5 follow");
  check_idx_rejected(idx({2, 3}, counting(7)), "longer than the 6 bytes of shape [2, 3]");
  check_idx_rejected(gzip(idx({2, 3}, counting(5))), "shape [2, 3] needs 6 bytes, 5 follow");
  check_idx_rejected(gzip(idx({2, 3}, counting(7))), "longer than the 6 bytes of shape [2, 3]");
  std::vector<uint8_t> file = idx({2, 3}, {});
  file.resize(10);
  check_idx_rejected(file, "truncated in extent 1 of 2");
}

TEST_CASE("IDX files of another type are rejected", "[data][idx]") {
  check_idx_rejected({0, 0, 13, 1, 0, 0, 0, 0},
                     "magic bytes 0 0 13 1, expected 0 0 8 (unsigned bytes)");
  check_idx_rejected({0, 0, 8, 0}, "magic bytes 0 0 8 0");
  check_idx_rejected({0, 0, 8, 9}, "and a rank of 1 to 8");
  check_idx_rejected({1, 0, 8, 1, 0, 0, 0, 0}, "magic bytes 1 0 8 1");
  check_idx_rejected({0x1f, 0x8c, 8, 1, 0, 0, 0, 0}, "magic bytes 31 140 8 1");  // almost gzip
  check_idx_rejected({'P', '5', '\n', '2', '8'}, "magic bytes 80 53 10 50");
}

TEST_CASE("absurd extents are rejected before memory is allocated", "[data][idx]") {
  const uint32_t most = 0xffffffffu;
  check_idx_rejected(idx({most}, counting(8)), "needs 4294967295 bytes, at most 8 follow");
  check_idx_rejected(idx({most, most, most}, counting(8)), "too many elements");
  check_idx_rejected(gzip(idx({most, 1000}, counting(8))), "needs 4294967295000 bytes, at most");
}

TEST_CASE("damaged gzip data are rejected", "[data][idx]") {
  const std::vector<uint8_t> good = gzip(idx({200}, counting(200)));
  std::vector<uint8_t> checksum = good;
  checksum[good.size() - 6] ^= 1;
  check_idx_rejected(checksum, "the compressed data are damaged: incorrect data check");
  std::vector<uint8_t> header = good;
  header[2] = 77;
  check_idx_rejected(header, "the compressed data are damaged");
  std::vector<uint8_t> trailing = good;
  trailing.push_back(0);
  check_idx_rejected(trailing, "1 bytes follow the compressed data");
  const TemporaryFolder folder;
  for (size_t i = 10; i < good.size(); ++i) {
    std::vector<uint8_t> changed = good;
    changed[i] ^= 0x10;
    test::write_bytes(folder / "changed", changed);
    try {  // the file is still valid if only a padding bit changed
      const IdxArray array = read_idx_u8(folder / "changed");
      CHECK(array.bytes == counting(200));
    } catch (const DataError&) {
    }
  }
}

TEST_CASE("a missing IDX file and a folder are errors that name the path", "[data][idx]") {
  const TemporaryFolder folder;
  QUANTRAIN_CHECK_ERROR(
      read_idx_u8(folder / "none"), DataError, "/none: cannot be opened: No such file");
  QUANTRAIN_CHECK_ERROR(read_idx_u8(folder.path()), DataError, "is not a regular file");
}

TEST_CASE("an IDX file that is larger than its header allows is refused before it is read",
          "[data][idx]") {
  const TemporaryFolder folder;
  for (const std::vector<uint8_t>& file : {idx({2, 3}, counting(6)), gzip(idx({1}, {1}))}) {
    test::write_bytes(folder / "large", file);
    test::grow_file(folder / "large", int64_t{1} << 36);  // more than fits in memory
    QUANTRAIN_CHECK_ERROR(read_idx_u8(folder / "large"), DataError, "large: ");
  }
}

TEST_CASE("the unpacked size of a gzipped file is limited, and a claimed size reserves no memory",
          "[data][idx]") {
  const TemporaryFolder folder;
  // A gzip bomb: a few megabytes unpack to 1 GiB of zeros.
  const uint32_t size = uint32_t{1} << 30;
  const auto squeeze = [](const std::vector<uint8_t>& header, uint32_t zeros, uint32_t sent) {
    z_stream stream{};
    deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    std::vector<uint8_t> file;
    std::vector<uint8_t> out(1 << 16);
    const auto put = [&](const std::vector<uint8_t>& bytes, int flush) {
      stream.next_in = const_cast<Bytef*>(bytes.data());
      stream.avail_in = static_cast<uInt>(bytes.size());
      do {
        stream.next_out = out.data();
        stream.avail_out = static_cast<uInt>(out.size());
        deflate(&stream, flush);
        file.insert(file.end(), out.data(), out.data() + out.size() - stream.avail_out);
      } while (stream.avail_out == 0);
    };
    put(header, Z_NO_FLUSH);
    const std::vector<uint8_t> zero(1 << 20);
    for (uint32_t done = 0; done < std::min(zeros, sent); done += 1 << 20) put(zero, Z_NO_FLUSH);
    put({}, Z_FINISH);
    deflateEnd(&stream);
    return file;
  };
  const std::vector<uint8_t> header = idx({size}, {});
  test::write_bytes(folder / "bomb", squeeze(header, size, size));
  const test::Child bomb = test::in_child([&]() -> std::string {
    read_idx_u8(folder / "bomb");
    return "read";
  });
  CHECK(bomb.text.find("needs 1073741824 bytes, the limit is 3") != std::string::npos);
  CHECK(bomb.text.find("read it with a larger limit if you trust the file") != std::string::npos);
  CHECK(bomb.kilobytes < 20000);

  // This file claims 200 MiB but contains 1 MiB. Padding makes it long enough for the compressed
  // form of 200 MiB.
  const uint32_t claimed = 200 << 20;
  std::vector<uint8_t> liar = squeeze(idx({claimed}, {}), claimed, 1 << 20);
  liar.resize(1 << 20);
  test::write_bytes(folder / "liar", liar);
  const test::Child lied = test::in_child([&]() -> std::string {
    read_idx_u8(folder / "liar");
    return "read";
  });
  CHECK(lied.text.find("bytes follow the compressed data") != std::string::npos);
  CHECK(lied.kilobytes < 40000);

  // The caller may set a larger or a smaller limit.
  test::write_bytes(folder / "good", gzip(idx({3000}, counting(3000))));
  CHECK(read_idx_u8(folder / "good", 3000).bytes == counting(3000));
  QUANTRAIN_CHECK_ERROR(
      read_idx_u8(folder / "good", 2999), DataError, "needs 3000 bytes, the limit is 2999");
  CHECK(unpacked_limit(1000) == (256 << 20) + 16000);
}

}  // namespace quantrain
