#include <cstring>

#include "framework/kernels/dispatch/dispatch.hpp"
#include "tests/framework/kernels/guarded.hpp"
#include "tests/framework/kernels/integer_testing.hpp"

using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

namespace {

// Random bits. As floats, some are NaN, whose bits a float operation could change.
std::vector<uint8_t> random_words(int64_t n, Random& random) { return random_codes(4 * n, random); }

std::vector<float> as_floats(const std::vector<uint8_t>& bytes) {
  std::vector<float> floats(bytes.size() / 4);
  if (!floats.empty()) std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

}  // namespace

TEST_CASE("words are transposed bit for bit, and nothing else is changed", "[kernels][integer]") {
  Random random(18);
  for (const int64_t rows : {0, 1, 3, 4, 5, 7, 8, 9, 16, 17, 40}) {
    for (const int64_t columns : {0, 1, 2, 3, 4, 5, 8, 11, 16}) {
      const int64_t from_stride = columns + random.below(3);
      const int64_t to_stride = rows + random.below(3);
      const int64_t from_size = rows == 0 ? 0 : (rows - 1) * from_stride + columns;
      const int64_t to_size = columns == 0 ? 0 : (columns - 1) * to_stride + rows;
      const Guarded from(as_floats(random_words(from_size, random)));
      const std::vector<uint8_t> before = random_words(to_size, random);
      const auto result = [&](Isa isa) {
        Guarded to(as_floats(before));
        integer_table(isa).transpose_u32(
            rows, columns, from.data(), from_stride, to.data(), to_stride);
        std::vector<uint8_t> bytes(before.size());
        if (!bytes.empty()) std::memcpy(bytes.data(), to.data(), bytes.size());
        return bytes;
      };
      const std::vector<uint8_t> expected = result(Isa::kReference);
      for (const Isa isa : usable_isas()) {
        CAPTURE(isa_name(isa), rows, columns, from_stride, to_stride);
        CHECK(result(isa) == expected);
      }
    }
  }
}

TEST_CASE("the reference transposes words", "[kernels][integer]") {
  const uint8_t from[] = {1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 11, 12, 13, 14, 15, 16, 17, 18};
  std::vector<uint8_t> to(16);
  integer_table(Isa::kReference).transpose_u32(2, 2, from, 3, to.data(), 2);
  CHECK(to == std::vector<uint8_t>{1, 2, 3, 4, 11, 12, 13, 14, 5, 6, 7, 8, 15, 16, 17, 18});
}

TEST_CASE("words need no alignment", "[kernels][integer]") {
  Random random(19);
  const int64_t rows = 13;
  const int64_t columns = 7;
  const std::vector<uint8_t> words = random_words(rows * columns, random);
  std::vector<uint8_t> expected(words.size());
  integer_table(Isa::kReference)
      .transpose_u32(rows, columns, words.data(), columns, expected.data(), rows);
  for (const Isa isa : usable_isas()) {
    for (const size_t offset : {size_t{1}, size_t{2}, size_t{3}}) {
      CAPTURE(isa_name(isa), offset);
      std::vector<uint8_t> from(offset);
      from.insert(from.end(), words.begin(), words.end());
      std::vector<uint8_t> to(offset + words.size());
      integer_table(isa).transpose_u32(
          rows, columns, from.data() + offset, columns, to.data() + offset, rows);
      CHECK(
          std::equal(expected.begin(), expected.end(), to.begin() + static_cast<int64_t>(offset)));
    }
  }
}
