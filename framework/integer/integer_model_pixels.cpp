#include <algorithm>

#include "framework/integer/integer_model_ready.hpp"
#include "framework/integer/saturation.hpp"

// The part of IntegerModel that takes pixels.
namespace quantrain {
namespace {

Buffer<float> pixel_values(std::span<const uint8_t> x) {
  Buffer<float> raw(std::ssize(x));
  std::transform(x.begin(), x.end(), raw.begin(), [](uint8_t pixel) {
    return static_cast<float>(pixel) / 255.0f;
  });
  return raw;
}

}  // namespace

int64_t IntegerModel::quantize_pixels(std::span<const uint8_t> x,
                                      std::span<uint8_t> codes,
                                      size_t i) const {
  const Buffer<float> raw = pixel_values(x);
  return quantize_input({raw.data(), x.size()}, codes, i);
}

/// Calls run with the codes of pixels. Returns how many saturate.
template <class Run>
int64_t IntegerModel::with_pixels(std::span<const uint8_t> x,
                                  Outside outside,
                                  const Run& run) const {
  const integer::Value& input = ready_->program.value(ready_->program.inputs[0]);
  const QParams& params = *input.params;
  if (input.features.empty() && params.type == QType{} && params.zero_point[0] == 0 &&
      params.scale[0] == 1.0f / 255.0f) {
    run(x);
    return 0;
  }
  Buffer<uint8_t> codes(std::ssize(x));
  const std::span<uint8_t> all(codes.data(), x.size());
  const Buffer<float> raw = pixel_values(x);
  const std::span<const float> values(raw.data(), x.size());
  const integer::EncodedValues encoded{.values = values,
                                       .outside = quantize_input(values, all),
                                       .samples = std::ssize(x) / ready_->input_elements[0],
                                       .columns = input.shape.rank() > 0 ? input.shape.back() : 1};
  integer::check_outside(outside, encoded, params, input.features, "IntegerModel", input.name);
  run(all);
  return encoded.outside;
}

int64_t IntegerModel::run_pixels(std::span<const uint8_t> x,
                                 std::span<int32_t> y,
                                 Outside outside) const {
  return with_pixels(x, outside, [&](std::span<const uint8_t> codes) { run_codes(codes, y); });
}
int64_t IntegerModel::run_pixels(std::span<const uint8_t> x,
                                 std::span<float> y,
                                 Outside outside) const {
  return with_pixels(x, outside, [&](std::span<const uint8_t> codes) { run_codes(codes, y); });
}
int64_t IntegerModel::classify_pixels(std::span<const uint8_t> x,
                                      std::span<int32_t> classes,
                                      Outside outside) const {
  return with_pixels(
      x, outside, [&](std::span<const uint8_t> codes) { classify_codes(codes, classes); });
}

}  // namespace quantrain
