#include "quant/lowering/output_codes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace quantrain::quant {
namespace {

// Fewer codes than these are less than 4 bits, although the output has more.
constexpr double kFewOutputCodes = 16.0;
// Values of fewer samples may lie close together by chance.
constexpr int64_t kFewestSamples = 8;

/// The step that computes the value; null for an input.
const integer::Step* made_by(const integer::Program& program, int value) {
  const auto step = std::find_if(program.steps.begin(),
                                 program.steps.end(),
                                 [&](const integer::Step& s) { return s.output == value; });
  return step == program.steps.end() ? nullptr : &*step;
}

std::vector<ChannelCodes> from_weights(const integer::Program& program, int value, int codes) {
  std::vector<ChannelCodes> few;
  const integer::Step* const step = made_by(program, without_views(program, value));
  const integer::QuantizedProduct* const product =
      step == nullptr ? nullptr : integer::product(step->operation);
  if (product == nullptr || !product->output) return few;
  const integer::Requantization& to = *product->output;
  const auto channels = static_cast<size_t>(to.m0.size());
  const size_t inputs = static_cast<size_t>(product->weight.size()) / channels;
  const SharedArray<int8_t> weights = product->weight.codes();
  std::vector<double> reach;
  for (size_t c = 0; c < channels; ++c) {
    double sum = 0.0;
    for (size_t i = 0; i < inputs; ++i)
      sum += std::abs(static_cast<double>(weights.data()[c * inputs + i]));
    const auto o = static_cast<int64_t>(c);
    reach.push_back(255.0 * sum * std::ldexp(static_cast<double>(to.m0[o]), -to.shift[o]));
  }
  const double largest = *std::max_element(reach.begin(), reach.end());
  for (size_t c = 0; c < channels; ++c) {
    const double got = largest == 0.0 ? 0.0 : std::min(reach[c], codes * reach[c] / largest);
    if (got < kFewOutputCodes)
      few.push_back({.channel = static_cast<int>(c), .codes = got, .of = codes});
  }
  return few;
}

std::vector<ChannelCodes> from_values(const Tensor& output, int codes) {
  const int64_t channels = output.dim(-1);
  const uint8_t* const y = output.codes()->u8();
  std::vector<ChannelCodes> few;
  for (int64_t c = 0; c < channels; ++c) {
    uint8_t least = 255;
    uint8_t most = 0;
    for (int64_t i = c; i < output.elements(); i += channels) {
      least = std::min(least, y[i]);
      most = std::max(most, y[i]);
    }
    const int got = most - least + 1;
    if (got < kFewOutputCodes)
      few.push_back({.channel = static_cast<int>(c),
                     .codes = static_cast<double>(got),
                     .of = codes,
                     .samples = output.dim(0)});
  }
  return few;
}

}  // namespace

int without_views(const integer::Program& program, int value) {
  const integer::Step* step = made_by(program, value);
  while (step != nullptr && std::holds_alternative<integer::View>(step->operation)) {
    value = step->inputs[0];
    step = made_by(program, value);
  }
  return value;
}

std::vector<ChannelCodes> few_output_codes(const integer::Program& program,
                                           int value,
                                           const Tensor& output) {
  if (!program.value(value).is_codes() || output.kind() != ValueKind::kCodes) return {};
  const int codes = program.value(value).params->type.levels();
  if (codes <= kFewOutputCodes) return {};
  return output.dim(0) < kFewestSamples ? from_weights(program, value, codes)
                                        : from_values(output, codes);
}

}  // namespace quantrain::quant
