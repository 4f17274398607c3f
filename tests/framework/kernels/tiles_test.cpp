#include <algorithm>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "tests/framework/kernels/guarded.hpp"
#include "tests/framework/kernels/kernel_testing.hpp"

// Tests the kernel that all float products use, with random parameters. These include parameters
// that no product or convolution uses.
namespace quantrain::kernels {
namespace {

using test::Guarded;

/// Whole numbers, so that sums of their products are exact in any order.
std::vector<float> whole_numbers(int64_t n, Random& random) {
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = static_cast<float>(random.below(9) - 4);
  return values;
}

/// Where the rows of an operand begin, as in RowsF32: at the positions of a list, or row_step
/// apart.
struct Rows {
  int64_t row_step, run_step, last;  // last: the greatest start of a row in any run
  std::vector<int64_t> list;         // empty: at multiples of row_step
};

Rows draw_rows(int64_t m, int64_t runs, int64_t row_step, bool lists, Random& random) {
  Rows rows{row_step, m * row_step + random.below(3), 0, {}};
  rows.last = (runs - 1) * rows.run_step + std::max<int64_t>(m - 1, 0) * row_step;
  if (!lists) return rows;
  rows.list.resize(static_cast<size_t>(m));
  for (int64_t i = 0; i < m; ++i) rows.list[static_cast<size_t>(i)] = i * row_step;
  for (int64_t i = m - 1; i > 0; --i) {
    std::swap(rows.list[static_cast<size_t>(i)],
              rows.list[static_cast<size_t>(random.below(i + 1))]);
  }
  rows.row_step = 0;
  return rows;
}

template <class T>
RowsF32<T> at(const Rows& rows, T* data, std::vector<T*>& pointers) {
  pointers.clear();
  for (const int64_t offset : rows.list) pointers.push_back(data + offset);
  if (pointers.empty()) return {nullptr, data, rows.row_step, rows.run_step};
  return {pointers.data(), nullptr, 0, rows.run_step};
}

TEST_CASE("tiles equal the reference for any rows, runs, segments and steps", "[kernels][gemm]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Random random(8);
  for (int draw = 0; draw < 400; ++draw) {
    const bool packed = random.below(2) == 0;
    TilesF32 p{};
    p.m = random.below(random.below(4) == 0 ? 70 : 20);
    p.n = random.below(packed ? kPanelColumns + 1 : 140);
    p.runs = 1 + random.below(5);
    p.segments = random.below(4);
    p.length = random.below(random.below(4) == 0 ? 110 : 12);
    p.a_step = 1 + random.below(3);
    p.column = random.below(4);
    p.accumulate = random.below(3) == 0;
    p.lo = random.below(2) == 0 ? 0.0f : -kInfinity;
    p.hi = random.below(2) == 0 ? 6.0f : kInfinity;
    p.b_rows = p.segments * p.length;
    p.b_step = packed ? 0 : p.n + random.below(3) + 1;
    if (!packed && p.segments == 1 && random.below(2) == 0) {
      p.n = std::max(p.n, kPanelColumns);  // enough columns for the kernels that prefetch
      p.b_step = p.n + random.below(3);
      p.fetches_next = true;
    }
    INFO("draw " << draw << " m " << p.m << " n " << p.n << " runs " << p.runs << " segments "
                 << p.segments << " length " << p.length << " packed " << packed);

    const bool lists = p.m > 0 && random.below(2) == 0;
    const int64_t steps[] = {1, 2, 3 + random.below(40)};
    const Rows a_rows = draw_rows(p.m, p.runs, steps[random.below(3)], lists, random);
    const Rows c_rows = draw_rows(p.m, p.runs, p.n + p.column + random.below(3), lists, random);
    SegmentF32 segments[4];
    int64_t last_a = 0;
    for (int64_t s = 0; s < p.segments; ++s) {
      segments[s] = {random.below(20), s * p.length * (packed ? 1 : p.b_step)};
      last_a = std::max(last_a, segments[s].a);
    }
    p.segment = segments;

    const int64_t columns_of_b = packed ? p.n : p.b_step;
    const std::vector<float> bias = whole_numbers(p.n, random);
    const Guarded guarded_bias(bias);
    if (random.below(2) == 0) p.bias = guarded_bias.data();
    const Guarded a(whole_numbers(
        a_rows.last + last_a + std::max<int64_t>(p.length - 1, 0) * p.a_step + 1, random));
    const std::vector<float> b =
        whole_numbers(p.b_rows == 0 ? 0 : (p.b_rows - 1) * columns_of_b + p.n, random);
    const std::vector<float> c = whole_numbers(c_rows.last + p.column + p.n, random);
    std::vector<const float*> a_list;
    std::vector<float*> c_list;
    p.a = at<const float>(a_rows, a.data(), a_list);

    const auto result = [&](Isa isa) {
      const Guarded in_place(b);
      std::vector<float> panel(static_cast<size_t>(p.b_rows * packed_columns(p.n)));
      if (packed) {
        float_table(isa).pack_f32(
            {p.b_rows, 0, p.b_rows, p.n, in_place.data(), p.n, 1, panel.data()});
      }
      const Guarded guarded_panel(panel);
      p.b = packed ? guarded_panel.data() : in_place.data();
      Guarded written(c);
      p.c = at<float>(c_rows, written.data(), c_list);
      float_table(isa).tiles_f32(p);
      return written.values();
    };
    const std::vector<float> expected = result(Isa::kReference);
    for (const Isa isa : usable_isas()) {
      INFO("isa " << isa_name(isa));
      CHECK(result(isa) == expected);
    }
  }
}

int64_t vector_floats(Isa isa) {
  switch (isa) {
    case Isa::kReference: return 1;
    case Isa::kAvx2:
    case Isa::kAvxVnni: return 8;
    case Isa::kAvx512Bw:
    case Isa::kAvx512Vnni:
    case Isa::kAmx: return 16;
    default: return 4;
  }
}

TEST_CASE("the kernel tables of each instruction set have the right name and vector width",
          "[kernels]") {
  for (const Isa isa : kAllIsas) {
    if (is_built(isa)) {
      CHECK(integer_table(isa).isa_name == isa_name(isa));
      // An instruction set that extends another one only by dot products of bytes has no float
      // kernels of its own.
      const Isa float_isa = isa == Isa::kAvxVnni                                ? Isa::kAvx2
                            : isa == Isa::kAvx512Vnni || isa == Isa::kAmx       ? Isa::kAvx512Bw
                            : isa == Isa::kNeon64Dot || isa == Isa::kNeon64I8mm ? Isa::kNeon64
                                                                                : isa;
      CHECK(float_table(isa).isa_name == isa_name(float_isa));
      CHECK(float_table(isa).vector_floats == vector_floats(isa));
    } else {
      QUANTRAIN_CHECK_ERROR(integer_table(isa), DataError, "is not built into this library");
      QUANTRAIN_CHECK_ERROR(float_table(isa), DataError, "is not built into this library");
    }
  }
}

TEST_CASE("the default kernel tables are those of the chosen instruction set", "[kernels]") {
  const test::RestoreSettings restore;
  for (const Isa isa : usable_isas()) {
    set_isa(isa);
    CHECK(&integer_table() == &integer_table(isa));
    CHECK(&float_table() == &float_table(isa));
  }
}

}  // namespace
}  // namespace quantrain::kernels
