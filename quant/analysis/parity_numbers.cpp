#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>

#include "framework/core/error.hpp"
#include "quant/analysis/number_text.hpp"
#include "quant/analysis/parity.hpp"

namespace quantrain::quant {
namespace {

double share_equal(int64_t different, int64_t all) {
  return all == 0 ? 1.0 : 1.0 - static_cast<double>(different) / static_cast<double>(all);
}

}  // namespace

double LayerParity::saturated_share() const {
  return floats == 0 ? 0.0 : static_cast<double>(saturated) / static_cast<double>(floats);
}

double ParityCost::signal_to_noise() const {
  return noise == 0.0 ? std::numeric_limits<double>::infinity() : 10.0 * std::log10(signal / noise);
}

double LayerParity::signal_to_noise() const { return ParityCost{signal, noise}.signal_to_noise(); }

int64_t LayerParity::worst_channel() const {
  int64_t worst = -1;
  for (size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].signal == 0.0 || channels[c].noise == 0.0) continue;
    if (worst < 0 ||
        channels[c].signal_to_noise() < channels[static_cast<size_t>(worst)].signal_to_noise())
      worst = static_cast<int64_t>(c);
  }
  return worst;
}

const LayerParity* Parity::most_saturated() const& {
  const LayerParity* most = nullptr;
  for (const LayerParity& layer : layers) {
    if (layer.saturated_share() > (most == nullptr ? 0.0 : most->saturated_share())) most = &layer;
  }
  return most;
}

const LayerParity* Parity::noisiest() const& {
  const LayerParity* most = nullptr;
  for (const LayerParity& layer : layers) {
    if (layer.noise == 0.0) continue;
    if (most == nullptr || layer.signal_to_noise() < most->signal_to_noise()) most = &layer;
  }
  return most;
}

const LayerParity* Parity::noisiest_output() const& {
  const auto lowest = [](const LayerParity& layer) {
    return layer.channels[static_cast<size_t>(layer.worst_channel())].signal_to_noise();
  };
  const LayerParity* worst = nullptr;
  for (const LayerParity& layer : layers) {
    if (layer.worst_channel() < 0) continue;
    if (worst == nullptr || lowest(layer) < lowest(*worst)) worst = &layer;
  }
  return worst;
}

int64_t Parity::codes() const {
  int64_t codes = 0;
  for (const LayerParity& layer : layers) codes += layer.is_output ? 0 : layer.codes;
  return codes;
}

int64_t Parity::codes_different() const {
  int64_t different = 0;
  for (const LayerParity& layer : layers) different += layer.is_output ? 0 : layer.different;
  return different;
}

double Parity::codes_equal() const { return share_equal(codes_different(), codes()); }

double Parity::logits_equal() const { return share_equal(logits_different, logits); }

int64_t Parity::max_code_difference() const {
  int64_t difference = 0;
  for (const LayerParity& layer : layers)
    difference = std::max(difference, layer.is_output ? 0 : layer.max_difference);
  return difference;
}

std::string Parity::first_difference() const {
  for (const LayerParity& layer : layers) {
    if (layer.different != 0) return layer.name;
  }
  return codes_from_floats_different != 0 ? "raw values" : "";
}

void Parity::add(const Parity& other) {
  if (layers.empty()) {
    *this = other;
    return;
  }
  if (other.layers.empty()) return;
  if (other.layers.size() != layers.size()) {
    throw GraphError("parity",
                     "the results of ",
                     other.layers.size(),
                     " layers cannot be added to those of ",
                     layers.size(),
                     ": both must be of one network");
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].codes += other.layers[i].codes;
    layers[i].different += other.layers[i].different;
    layers[i].max_difference = std::max(layers[i].max_difference, other.layers[i].max_difference);
    layers[i].floats += other.layers[i].floats;
    layers[i].saturated += other.layers[i].saturated;
    layers[i].signal += other.layers[i].signal;
    layers[i].noise += other.layers[i].noise;
    const std::vector<ParityCost>& channels = other.layers[i].channels;
    if (layers[i].channels.empty()) layers[i].channels.resize(channels.size());
    for (size_t c = 0; c < std::min(channels.size(), layers[i].channels.size()); ++c) {
      layers[i].channels[c].signal += channels[c].signal;
      layers[i].channels[c].noise += channels[c].noise;
    }
  }
  images += other.images;
  measured += other.measured;
  logits += other.logits;
  logits_different += other.logits_different;
  max_logit_difference = std::max(max_logit_difference, other.max_logit_difference);
  top1_disagreements += other.top1_disagreements;
  codes_from_floats += other.codes_from_floats;
  codes_from_floats_different += other.codes_from_floats_different;
}

std::ostream& operator<<(std::ostream& stream, const Parity& parity) {
  for (const LayerParity& layer : parity.layers) {
    stream << "  " << layer.name << ": " << layer.different << " of " << layer.codes
           << " integers differ, at most by " << layer.max_difference << '\n';
  }
  stream << "  outputs: " << parity.logits_different << " of " << parity.logits
         << " differ; the largest one changes for " << parity.top1_disagreements << " of "
         << parity.images << " samples\n";
  if (parity.codes_from_floats > 0) {
    stream << "  inputs from raw values: " << parity.codes_from_floats_different << " of "
           << parity.codes_from_floats << " codes differ\n";
  }
  const LayerParity* const saturated = parity.most_saturated();
  const LayerParity* const noisiest = parity.noisiest();
  if (noisiest != nullptr) {
    stream << "  against float, " << parity.measured << " samples: at most "
           << percent_text(saturated == nullptr ? 0.0 : saturated->saturated_share())
           << " of a layer's values saturate";
    if (saturated != nullptr) stream << " (\"" << saturated->name << "\")";
    stream << ", signal-to-noise is at least " << number_text(noisiest->signal_to_noise())
           << " dB (\"" << noisiest->name << "\")\n";
  }
  const LayerParity* const output = parity.noisiest_output();
  if (output != nullptr && output->channels.size() > 1) {
    const int64_t channel = output->worst_channel();
    stream << "  output channels: signal-to-noise is at least "
           << number_text(output->channels[static_cast<size_t>(channel)].signal_to_noise())
           << " dB (channel " << channel << " of \"" << output->name << "\")\n";
  }
  if (const std::string first = parity.first_difference(); !first.empty())
    stream << "  first difference: \"" << first << "\"\n";
  return stream;
}

}  // namespace quantrain::quant
