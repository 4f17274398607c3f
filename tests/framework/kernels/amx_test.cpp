// Products by tiles of AMX: with a model of its instructions on CPUs with AVX-512 VNNI, and with
// the instructions where the CPU and the system allow them.
#if QUANTRAIN_AMX
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/integer/channels.hpp"
#include "tests/framework/kernels/amx_model.hpp"
#include "tests/framework/kernels/guarded.hpp"
#include "tests/framework/kernels/integer_testing.hpp"

using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

namespace {

/// A call of dot_u8s8. Its rows begin `row_step` bytes apart or, if that is 0, at random places.
struct Call {
  int64_t rows, outputs, segments, quads;
  int64_t row_step = 0;
};

/// The operands of a call, and its sums by the definition of DotU8S8.
class Operands {
 public:
  Operands(const Call& call, bool extreme, Random& random) : c_(call) {
    integer_table(Isa::kAvx512Vnni)
        .panel_layout_u8s8({.outputs = c_.outputs, .terms = 4 * c_.quads}, &layout_);
    const int64_t length = 4 * c_.quads;
    segment_step_ = length + random.below(9);
    const int64_t row = (c_.segments - 1) * segment_step_ + length;
    const int64_t most = c_.row_step == 0 ? 200 : (c_.rows - 1) * c_.row_step;
    x_ = random_codes(row + most, random);
    const std::vector<int8_t> w = random_weights(c_.outputs * c_.segments * length, random);
    if (extreme) std::fill(x_.begin(), x_.end(), uint8_t{255});
    // The last row ends where x ends.
    for (int64_t i = 0; i < c_.rows; ++i) {
      const bool is_last = i == c_.rows - 1;
      places_.push_back(c_.row_step > 0 ? i * c_.row_step : is_last ? most : random.below(200));
    }
    const int64_t panels = (c_.outputs + layout_.width - 1) / layout_.width;
    panel_ = c_.segments * length * layout_.width;
    packed_.resize(static_cast<size_t>(panels * panel_));
    start_.resize(static_cast<size_t>(panels * layout_.width));
    for (int64_t o = 0; o < c_.outputs; ++o) {
      start_[at(o)] = static_cast<int32_t>(random.below(2000001) - 1000000);
      for (int64_t k = 0; k < c_.segments * length; ++k) {
        const int64_t group = k / 4 * layout_.width + o % layout_.width;
        packed_[at(o / layout_.width * panel_ + 4 * group + k % 4)] =
            extreme ? int8_t{-128} : w[at(o * c_.segments * length + k)];
      }
    }
  }

  std::vector<int32_t> sums() const {
    std::vector<int32_t> sums;
    for (int64_t row = 0; row < c_.rows; ++row) {
      for (int64_t o = 0; o < c_.outputs; ++o) {
        int32_t sum = start_[at(o)];
        for (int64_t k = 0; k < 4 * c_.quads * c_.segments; ++k) {
          const int64_t in_row = k / (4 * c_.quads) * segment_step_ + k % (4 * c_.quads);
          const int64_t group = k / 4 * layout_.width + o % layout_.width;
          sum += x_[at(places_[at(row)] + in_row)] *
                 packed_[at(o / layout_.width * panel_ + 4 * group + k % 4)];
        }
        sums.push_back(sum);
      }
    }
    return sums;
  }

  template <class Dot>
  void check(const Dot& dot, Random& random) const {
    CAPTURE(c_.rows, c_.outputs, c_.segments, c_.quads, c_.row_step, layout_.width);
    const std::vector<int32_t> expected = sums();
    const Guarded x(x_);
    std::vector<const uint8_t*> rows;
    for (const int64_t place : places_) rows.push_back(x.data() + place);
    DotU8S8 p{};
    p.rows = c_.rows;
    p.outputs = c_.outputs;
    p.segments = c_.segments;
    p.segment_step = segment_step_;
    p.quads = c_.quads;
    p.x = rows.data();
    p.w = packed_.data();
    p.panel = panel_;
    p.layout = layout_;
    p.start = start_.data();
    p.stride = c_.outputs;
    Guarded acc(std::vector<int32_t>(expected.size(), -1));
    p.acc = acc.data();
    dot(p);
    CHECK(acc.values() == expected);

    // Rows of codes are further apart, and the bytes between them stay as they are.
    const auto entries = static_cast<int64_t>(start_.size());
    Multipliers multipliers(entries, false, random);
    int64_t most = 0;
    for (const int32_t sum : expected) most = std::max(most, std::abs(int64_t{sum}));
    if (most <= INT32_MAX >> 4 && random.below(2) == 0) {
      for (int32_t& shift : multipliers.shift) shift -= 7;  // 29 and more
    }
    RequantizeU8 requantize = multipliers.view();
    set_usual(entries, most, requantize);
    REQUIRE(requantize.usual);
    p.stride = c_.outputs + 3;
    std::vector<uint8_t> codes(static_cast<size_t>((c_.rows - 1) * p.stride + c_.outputs), 7);
    const Guarded y(codes);
    for (int64_t i = 0; i < c_.rows * c_.outputs; ++i) {
      const int64_t o = i % c_.outputs;
      codes[at(i / c_.outputs * p.stride + o)] = multipliers(expected[at(i)], o);
    }
    p.acc = nullptr;
    p.y = const_cast<uint8_t*>(y.data());
    p.requantize = requantize;
    dot(p);
    CHECK(y.values() == codes);
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }

  Call c_;
  PanelLayout layout_{};
  int64_t segment_step_ = 0;
  int64_t panel_ = 0;
  std::vector<uint8_t> x_;
  std::vector<int64_t> places_;
  std::vector<int8_t> packed_;
  std::vector<int32_t> start_;
};

template <class Dot>
void check_calls(const Dot& dot) {
  Random random(44);
  const auto check = [&](const Call& call, bool extreme = false) {
    Operands(call, extreme, random).check(dot, random);
  };
  // Blocks of one, two and four tiles of rows, the last one of which may begin earlier.
  for (const int64_t rows : {16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 80, 81, 130}) {
    for (const int64_t outputs : {5, 16, 32, 40}) {
      check({rows, outputs, 1, 3, 20});
      check({rows, outputs, 2, 3});
    }
  }
  // Panels of one to four vectors, several panels, and columns without outputs.
  for (const int64_t outputs : {1, 17, 33, 47, 48, 49, 63, 64, 65, 80, 96, 129})
    check({35, outputs, 2, 5, 33});
  // Steps that fill their segments, and last steps that repeat groups of the step before.
  for (int64_t quads = 1; quads <= 50; ++quads) {
    check({19, 20, 1 + quads % 3, quads, 4 * quads});
    check({19, 20, 1 + quads % 2, quads});
  }
  for (const int64_t quads : {64, 100, 113}) check({40, 33, 3, quads});
  // Neither instruction saturates.
  check({32, 32, 3, 48, 100}, true);
  check({32, 32, 3, 50}, true);
}

}  // namespace

TEST_CASE("products by tiles are exact with a model of AMX's instructions",
          "[kernels][integer][amx-model]") {
  if (!is_supported(Isa::kAvx512Vnni)) return;
  check_calls(model_of_dot_tiles);
}

// This and the next case are skipped by the test `amx_tests` where there is no AMX.
TEST_CASE("products by tiles are exact with AMX", "[kernels][integer][amx]") {
  if (!is_supported(Isa::kAmx)) return;
  check_calls(dot_tiles_of_amx);
  check_calls(integer_table(Isa::kAmx).dot_u8s8);
}

TEST_CASE("AMX is at hand", "[.][has-amx]") { REQUIRE(is_supported(Isa::kAmx)); }
#endif
