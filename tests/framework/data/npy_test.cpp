#include "framework/data/npy.hpp"

#include <limits>
#include <xtensor/xnpy.hpp>

#include "framework/core/array.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/framework/data/npy_files.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::bytes_of;
using test::npy;
using test::npy_of;
using test::TemporaryFolder;

NpyArray array_of(const std::vector<uint8_t>& file) {
  const TemporaryFolder folder;
  test::write_bytes(folder / "x.npy", file);
  return read_npy(folder / "x.npy");
}

}  // namespace

TEST_CASE("a .npy of each type gives its values", "[data][npy]") {
  const NpyArray bytes = array_of(npy("|u1", "(2, 3)", {0, 1, 2, 253, 254, 255}));
  CHECK(bytes.shape == Shape{2, 3});
  CHECK(bytes.type == NpyType::kU8);
  CHECK(bytes.floats() == std::vector<float>{0, 1, 2, 253, 254, 255});
  CHECK(bytes.labels() == std::vector<int32_t>{0, 1, 2, 253, 254, 255});
  CHECK(NpyArray(bytes).take_bytes() == std::vector<uint8_t>{0, 1, 2, 253, 254, 255});

  const auto both = [](const char* type, const std::vector<uint8_t>& data) {
    const NpyArray array = array_of(npy(type, "(2,)", data));
    CHECK(array.shape == Shape{2});
    CHECK(array.labels() == std::vector<int32_t>{-3, 100});
    CHECK(array.floats() == std::vector<float>{-3, 100});
  };
  both("|i1", bytes_of<int8_t>({-3, 100}));
  both("<i2", bytes_of<int16_t>({-3, 100}));
  both("<i4", bytes_of<int32_t>({-3, 100}));
  both("<i8", bytes_of<int64_t>({-3, 100}));
  CHECK(array_of(npy("<f4", "(2,)", bytes_of<float>({-0.1f, 3e30f}))).floats() ==
        std::vector<float>{-0.1f, 3e30f});
  CHECK(array_of(npy("<f8", "(2,)", bytes_of<double>({-0.1, 1e-300}))).floats() ==
        std::vector<float>{-0.1f, 0.0f});
}

TEST_CASE("a .npy of every version, rank and header layout is read", "[data][npy]") {
  const std::vector<uint8_t> four{1, 2, 3, 4};
  for (const int version : {1, 2, 3})
    CHECK(array_of(npy("|u1", "(2, 2)", four, version)).bytes == four);
  CHECK(array_of(npy("|u1", "()", {7})).shape == Shape{});
  CHECK(array_of(npy("|u1", "(0, 3)", {})).shape == Shape{0, 3});
  CHECK(array_of(npy("|u1", "(4,)", four, 1, true)).bytes ==
        four);                                    // with one axis, both orders agree
  for (const char* type : {"<u1", "=u1", ">u1"})  // bytes have no byte order
    CHECK(array_of(npy(type, "(4,)", four)).bytes == four);
  CHECK(
      array_of(npy_of("{\"shape\":(4,),\"fortran_order\":False,\"descr\":\"|u1\"}", four)).bytes ==
      four);
}

TEST_CASE("a .npy that xtensor wrote is read", "[data][npy]") {
  const TemporaryFolder folder;
  const xt::xarray<float> floats{{0.5f, -1.0f, 2.0f}, {3.0f, 4.0f, -5.25f}};
  xt::dump_npy(folder / "floats.npy", floats);
  const NpyArray array = read_npy(folder / "floats.npy");
  CHECK(array.shape == Shape{2, 3});
  CHECK(array.floats() == std::vector<float>(floats.begin(), floats.end()));
  const xt::xarray<int64_t> integers{3, -1};
  xt::dump_npy(folder / "integers.npy", integers);
  CHECK(read_npy(folder / "integers.npy").labels() == std::vector<int32_t>{3, -1});
}

TEST_CASE("the error about a .npy of another type or order says what to save instead",
          "[data][npy]") {
  QUANTRAIN_CHECK_ERROR(array_of(npy(">f4", "(1,)", {0, 0, 0, 0})),
                        DataError,
                        "is big-endian (>f4): save array.astype(\"<f4\") instead");
  QUANTRAIN_CHECK_ERROR(array_of(npy("<f2", "(1,)", {0, 0})),
                        DataError,
                        "values of type \"<f2\", expected u1, i1, i2, i4, i8, f4 or f8");
  QUANTRAIN_CHECK_ERROR(array_of(npy("|O", "(1,)", {0, 0})), DataError, "values of type \"|O\"");
  QUANTRAIN_CHECK_ERROR(array_of(npy("|b1", "(1,)", {0})), DataError, "values of type \"|b1\"");
  QUANTRAIN_CHECK_ERROR(array_of(npy("", "(1,)", {0})), DataError, "values of type \"\"");
  QUANTRAIN_CHECK_ERROR(array_of(npy("xu1", "(1,)", {0})), DataError, "values of type \"xu1\"");
  QUANTRAIN_CHECK_ERROR(array_of(npy("=i2", "(1,)", {0, 0})), DataError, "values of type \"=i2\"");
  QUANTRAIN_CHECK_ERROR(array_of(npy("|u1", "(2, 2)", {1, 2, 3, 4}, 1, true)),
                        DataError,
                        "is in Fortran order: save numpy.ascontiguousarray(array) instead");
  QUANTRAIN_CHECK_ERROR(
      array_of(npy_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", {})),
      DataError,
      "is a structured array: save each field");
  const double huge = std::numeric_limits<double>::max();
  QUANTRAIN_CHECK_ERROR(array_of(npy("<f8", "(2,)", bytes_of<double>({0.0, huge}))).floats(),
                        DataError,
                        "value 1.79769e+308 at 1 is beyond what a float32 can hold");
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(array_of(npy("<f8", "(1,)", bytes_of<double>({infinity}))).floats()[0] > 1e38f);
  QUANTRAIN_CHECK_ERROR(
      array_of(npy("<i8", "(1,)", bytes_of<int64_t>({int64_t{1} << 31}))).labels(),
      DataError,
      "label 2147483648 at 0 is not a 32-bit integer");
  QUANTRAIN_CHECK_ERROR(
      array_of(npy("<i8", "(1,)", bytes_of<int64_t>({int64_t{-1} << 32}))).labels(),
      DataError,
      "label -4294967296 at 0 is not a 32-bit integer");
  QUANTRAIN_CHECK_ERROR(array_of(npy("<f8", "(1,)", bytes_of<double>({1.0}))).labels(),
                        DataError,
                        "labels are of type f8, expected integers");
  QUANTRAIN_CHECK_ERROR(array_of(npy("<f4", "(1,)", bytes_of<float>({1.0f}))).labels(),
                        DataError,
                        "labels are of type f4, expected integers");
  QUANTRAIN_CHECK_ERROR(array_of(npy("<f4", "(1,)", bytes_of<float>({1.0f}))).take_bytes(),
                        DataError,
                        "values are of type f4, expected bytes (u1)");
}

TEST_CASE("a .npy whose size does not match its header is refused", "[data][npy]") {
  QUANTRAIN_CHECK_ERROR(
      array_of(npy("<f4", "(2, 2)", {1, 2, 3})),
      DataError,
      "truncated: shape [2, 2] of f4 needs 4 bytes for each of 4 values, but 3 bytes follow");
  QUANTRAIN_CHECK_ERROR(
      array_of(npy("|u1", "(2,)", {1, 2, 3})), DataError, "too long: shape [2] of u1");
  QUANTRAIN_CHECK_ERROR(
      array_of(npy("<f8", "(4611686018427387904,)", {1, 2, 3})), DataError, "truncated: shape");
  QUANTRAIN_CHECK_ERROR(
      array_of(npy("<f8", "(4611686018427387904, 8)", {1, 2, 3})), DataError, "too many elements");
  QUANTRAIN_CHECK_ERROR(array_of(npy("<f8", "(99999999999999999999,)", {})),
                        DataError,
                        "expected an extent of the shape");
  QUANTRAIN_CHECK_ERROR(array_of(npy("<f8", "(-1,)", {})), DataError, "an extent of the shape");
  QUANTRAIN_CHECK_ERROR(
      array_of(npy("|u1", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", {1})), DataError, "more than 8 axes");
}

TEST_CASE("a damaged .npy header is refused, and so is a file truncated anywhere", "[data][npy]") {
  const auto header = [](const std::string& text) { return array_of(npy_of(text, {})); };
  QUANTRAIN_CHECK_ERROR(header("nothing"), DataError, "header: expected { at character 0, found");
  QUANTRAIN_CHECK_ERROR(header("{}"), DataError, "header: lacks \"descr\"");
  QUANTRAIN_CHECK_ERROR(
      header("{'descr': '|u1', 'descr': '|u1'}"), DataError, "\"descr\" occurs twice");
  QUANTRAIN_CHECK_ERROR(header("{'what': 1}"), DataError, "unknown entry \"what\"");
  QUANTRAIN_CHECK_ERROR(header("{'descr': '|u1"), DataError, "expected the end of a name");
  QUANTRAIN_CHECK_ERROR(header("{'descr': "), DataError, "expected a quoted name at character 10");
  QUANTRAIN_CHECK_ERROR(header("{'descr'"), DataError, "expected : at character 8, found \"\"");
  QUANTRAIN_CHECK_ERROR(header("\x1b[31m\x7f"), DataError, "found \"?[31m?\"");
  QUANTRAIN_CHECK_ERROR(header("{'fortran_order': Maybe}"), DataError, "True or False");
  QUANTRAIN_CHECK_ERROR(header("{'shape': (1,) 'descr'"), DataError, "expected , or }");
  QUANTRAIN_CHECK_ERROR(header("{'descr': '|u1', 'fortran_order': False, 'shape': ()} \n x"),
                        DataError,
                        "expected nothing more");
  std::vector<uint8_t> other = npy("|u1", "()", {7}, 2);
  other[6] = 4;
  QUANTRAIN_CHECK_ERROR(array_of(other), DataError, "is of version 4.0, expected 1.0 to 3.0");
  other[6] = 1;
  other[7] = 1;
  QUANTRAIN_CHECK_ERROR(array_of(other), DataError, "is of version 1.1, expected 1.0 to 3.0");
  other[0] = 'P';
  QUANTRAIN_CHECK_ERROR(array_of(other), DataError, "does not begin as a .npy file does");
  std::vector<uint8_t> endless = npy("|u1", "()", {7}, 2);
  endless[11] = 0x7f;  // a header of two gigabytes
  QUANTRAIN_CHECK_ERROR(array_of(endless), DataError, "the header claims 21307");
  QUANTRAIN_CHECK_ERROR(array_of(endless), DataError, " follow, and the limit is 65536");

  const std::vector<uint8_t> whole = npy("<f4", "(2, 3)", std::vector<uint8_t>(24), 2);
  for (size_t n = 0; n < whole.size(); ++n)
    CHECK_THROWS_AS(array_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)}),
                    DataError);
  QUANTRAIN_CHECK_ERROR(read_npy("/nowhere/x.npy"), DataError, "/nowhere/x.npy");
}

}  // namespace quantrain
