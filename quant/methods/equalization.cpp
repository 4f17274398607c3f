#include "quant/methods/equalization.hpp"

#include <algorithm>
#include <cmath>

#include "framework/core/error.hpp"
#include "quant/methods/rescale.hpp"

namespace quantrain::quant {
namespace {

constexpr double kEqual = 1e-3;  // factors so close to 1 change no code

struct MadeAndRead {
  Place place;
  const Product* makes = nullptr;
  std::vector<std::pair<const Product*, Place::Reader>> reads{};
  MethodRow row;
};

/// Largest |w| of each channel, along the first axis.
std::vector<float> largest_made(const Product& product, int64_t channels) {
  const std::vector<float> w = product.folded_weight();
  std::vector<float> largest(static_cast<size_t>(channels), 0.0f);
  for (size_t i = 0; i < w.size(); ++i) {
    float& of_channel = largest[i * largest.size() / w.size()];
    of_channel = std::max(of_channel, std::abs(w[i]));
  }
  return largest;
}

/// Largest |w| that reads each channel.
std::vector<float> largest_read(const MadeAndRead& pair) {
  std::vector<float> largest(static_cast<size_t>(pair.place.channels), 0.0f);
  for (const auto& [product, reader] : pair.reads) {
    const std::vector<float> w = product->folded_weight();
    const ReadChannels read(reader, product->slot->own().weight.shape());
    for (size_t i = 0; i < w.size(); ++i) {
      const int64_t channel = read.of(static_cast<int64_t>(i)) - reader.offset;
      if (channel < 0 || channel >= pair.place.channels) continue;
      float& of_channel = largest[static_cast<size_t>(channel)];
      of_channel = std::max(of_channel, std::abs(w[i]));
    }
  }
  return largest;
}

/// Why the scales of a network do not follow its weights and values; empty if they do.
std::string why_scales_stay(Module& net) {
  const Plugged plugged(net);
  for (const WeightQuantizer* slot : plugged.weights) {
    if (slot->is_given() || is_learned(slot->config().estimator))
      return "the weight scale of \"" + slot->layer() +
             "\" is learned or given: equalize before that";
  }
  for (const FakeQuantize* slot : plugged.activations) {
    if (slot->config().range) continue;  // of a softmax, which no weight scales
    if (slot->is_given() || is_learned(slot->config().estimator))
      return "the range of \"" + slot->layer() + "\" is learned or given: equalize before that";
  }
  return "";
}

const Product* product_at(const std::vector<Product>& products, const std::string& path) {
  const auto found = std::find_if(
      products.begin(), products.end(), [&](const Product& p) { return p.path == path; });
  return found == products.end() ? nullptr : &*found;
}

/// The layers around the value of a product, or why it cannot be equalized, in the row.
MadeAndRead pair_of(MethodRun& run,
                    const std::vector<WiredValue>& wiring,
                    const std::vector<Product>& products,
                    const Product& product) {
  MadeAndRead pair{.place = {}, .makes = &product, .row = {.method = "", .layer = product.path}};
  try {
    pair.place = place_of(run.net, wiring, product.path);
    if (pair.place.gives_output) {
      pair.row.skipped = "its value is an output of the network";
    } else if (!product.fixed.empty()) {
      pair.row.skipped = product.fixed;
    }
    for (const Place::Reader& reader : pair.place.readers) {
      const Product* const reads = product_at(products, reader.layer);
      if (reads == nullptr) {
        pair.row.skipped = "\"" + reader.layer + "\", which reads the value, stays in float";
      } else if (!reads->fixed.empty()) {
        pair.row.skipped = reader.layer + ": " + reads->fixed;
      } else {
        pair.reads.emplace_back(reads, reader);
      }
    }
    if (pair.row.skipped.empty()) {  // throws if a factor does not pass
      scale_channels(
          run.net, pair.place, std::vector<float>(static_cast<size_t>(pair.place.channels), 1.0f));
    }
  } catch (const QuantError& error) {
    pair.row.skipped = error.what();
  }
  return pair;
}

/// Equalizes a value. Returns the largest factor, or its inverse.
double equalize(MethodRun& run, const MadeAndRead& pair) {
  std::vector<float> factor =
      equalizing_factors(largest_made(*pair.makes, pair.place.channels), largest_read(pair));
  double largest = 1.0;
  for (float& s : factor) {
    largest = std::max({largest, static_cast<double>(s), 1.0 / static_cast<double>(s)});
    s = 1.0f / s;
  }
  scale_channels(run.net, pair.place, factor);
  std::vector<double>& means = run.float_means.at(pair.makes->path);
  for (size_t c = 0; c < factor.size(); ++c) means[c] *= static_cast<double>(factor[c]);
  return largest;
}

}  // namespace

std::vector<float> equalizing_factors(std::span<const float> r1, std::span<const float> r2) {
  std::vector<float> factors(r1.size(), 1.0f);
  for (size_t c = 0; c < r1.size(); ++c) {
    const double s = std::sqrt(static_cast<double>(r1[c]) * r2[c]) / r2[c];
    const auto factor = static_cast<float>(s);
    if (r1[c] > 0.0f && r2[c] > 0.0f && std::isnormal(factor)) factors[c] = factor;
  }
  return factors;
}

void Equalization::apply(MethodRun& run) const {
  if (rounds < 1) throw DataError(kName, "rounds must be positive, got ", rounds);
  const std::vector<Product> products = products_of(run.net, run.example);
  const std::vector<WiredValue> wiring = wiring_of(run.net, run.example);
  const std::string scales_stay = why_scales_stay(run.net);
  std::vector<MadeAndRead> pairs;
  for (const Product& product : products) {
    MadeAndRead pair = pair_of(run, wiring, products, product);
    pair.row.method = kName;
    pair.row.measure = "largest factor";
    if (!scales_stay.empty()) pair.row.skipped = scales_stay;
    pairs.push_back(std::move(pair));
  }
  bool changed = false;
  for (int64_t round = 0; round < rounds; ++round) {
    double largest = 1.0;
    for (MadeAndRead& pair : pairs) {
      if (!pair.row.skipped.empty()) continue;
      pair.row.after = equalize(run, pair);
      if (round == 0) pair.row.before = pair.row.after;
      largest = std::max(largest, pair.row.after);
      changed = true;
    }
    if (largest < 1.0 + kEqual) break;
  }
  if (changed) calibrate(run.net, run.data);
  for (MadeAndRead& pair : pairs) run.rows.push_back(std::move(pair.row));
}

}  // namespace quantrain::quant
