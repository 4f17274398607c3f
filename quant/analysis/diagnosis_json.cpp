#include <string>

#include "framework/io/json_writer.hpp"
#include "quant/analysis/diagnosis.hpp"

namespace quantrain::quant {
namespace {

void write(JsonWriter& json, const Range& range) {
  json.list([&] {
    json.write(range.min);
    json.write(range.max);
  });
}

void write(JsonWriter& json, const WeightsDiagnosis& weights) {
  json.object([&] {
    json.member("bits", weights.type.bits);
    json.member("per_channel", weights.per_channel);
    json.member("learned", weights.learned);
    json.member("channels", weights.channels);
    json.member("snr", weights.snr);
    json.member("worst_snr", weights.worst_snr);
    json.member("worst_channel", weights.worst_channel);
    json.member("median_codes", weights.median_codes);
    json.member("largest_to_median", weights.largest_to_median);
    json.member("largest_channel", weights.largest_channel);
    json.member("scale_to_weights", weights.scale_to_weights);
    json.member("stuck_scales", weights.stuck_scales);
    json.member("bias_error", weights.bias_error);
    json.member("bias_share", weights.bias_share);
  });
}

void write(JsonWriter& json, const LayerDiagnosis& layer) {
  json.object([&] {
    json.member("name", layer.name);
    json.member("slot", layer.slot);
    json.member("operation", layer.operation);
    json.member("is_input", layer.is_input);
    json.member("is_output", layer.is_output);
    json.member("reads", layer.reads);
    if (layer.params) {
      json.member("bits", layer.params->type.bits);
      json.member("scale", layer.params->scale);
      json.member("zero_point", layer.params->zero_point);
    }
    json.member("learned", layer.learned);
    if (layer.floats.values > 0) {
      json.member("values", layer.floats.values);
      json.member("range", [&] { write(json, layer.floats.range); });
      json.member("central", [&] { write(json, layer.floats.central); });
      json.member("rms", layer.floats.rms);
      json.member("counts", layer.floats.counts);
      json.member("snr_alone", layer.snr_alone);
      json.member("snr_accumulated", layer.snr_accumulated);
      json.member("noise_share", layer.noise_share);
      json.member("output_error", layer.output_error);
      json.member("rmse", layer.rmse);
      json.member("max_error", layer.max_error);
      json.member("relative", layer.relative);
      json.member("saturated_low", layer.saturated_low);
      json.member("saturated_high", layer.saturated_high);
      if (layer.is_input) json.member("saturated_encoding", layer.saturated_encoding);
      json.member("at_limits", layer.at_limits);
      json.member("range_rmse", layer.range_rmse);
      json.member("saturation_share", layer.saturation_share);
      json.member("codes_central", layer.codes_central);
      json.member("codes_range", layer.codes_range);
      if (layer.is_input) {
        json.member("usual", [&] { write(json, layer.usual); });
        json.member("codes_usual", layer.codes_usual);
      }
      json.member("channel_ranges", [&] {
        json.list([&] {
          for (const Range& range : layer.channel_ranges) write(json, range);
        });
      });
      json.member("constant_float", layer.constant_float);
      json.member("largest_to_median", layer.largest_to_median);
      json.member("largest_channel", layer.largest_channel);
    }
    json.member("codes_used", layer.codes_used);
    json.member("codes", layer.codes);
    json.member("channels", layer.channels);
    json.member("constant", layer.constant);
    if (layer.weights) json.member("weights", [&] { write(json, *layer.weights); });
    if (layer.accumulators) {
      json.member("accumulators", [&] {
        json.object([&] {
          json.member("largest", layer.accumulators->largest);
          json.member("bound", layer.accumulators->bound);
          json.member("headroom_bits", layer.accumulators->headroom_bits);
        });
      });
    }
  });
}

void write(JsonWriter& json, const ConfusionMatrix& matrix) {
  json.list([&] {
    for (int64_t label = 0; label < matrix.classes(); ++label) {
      json.list([&] {
        for (int64_t predicted = 0; predicted < matrix.classes(); ++predicted)
          json.write(matrix.count(label, predicted));
      });
    }
  });
}

void write(JsonWriter& json, const OutputDiagnosis& output) {
  json.object([&] {
    json.member("name", output.name);
    json.member("spread", output.spread);
    json.member("rmse", output.rmse);
    json.member("max_error", output.max_error);
    json.member("relative", output.relative);
    if (output.target_rmse_float) json.member("target_rmse_float", *output.target_rmse_float);
    if (output.target_rmse_integers)
      json.member("target_rmse_integers", *output.target_rmse_integers);
    if (const auto& largest = output.largest_targets) {
      json.member("largest_targets", [&] {
        json.object([&] {
          json.member("rows", largest->rows);
          json.member("targets", [&] { write(json, largest->targets); });
          json.member("distance", largest->distance);
          json.member("rmse_float", largest->rmse_float);
          json.member("rmse_integers", largest->rmse_integers);
        });
      });
    }
  });
}

void write(JsonWriter& json, const SampleDiagnosis& sample) {
  json.object([&] {
    json.member("index", sample.index);
    json.member("error", sample.error);
    if (sample.label) json.member("label", *sample.label);
    json.member("shape", std::vector<int64_t>(sample.shape.begin(), sample.shape.end()));
    json.member("input", sample.input);
    json.member("floats", sample.floats);
    json.member("integers", sample.integers);
  });
}

void write(JsonWriter& json, const Finding& finding) {
  json.object([&] {
    json.member("kind", to_string(finding.kind));
    json.member("layer", finding.layer);
    if (!finding.operand.empty()) json.member("operand", finding.operand);
    json.member("number", finding.number);
    json.member("output_error", finding.output_error);
    json.member("bits_lost", finding.bits_lost);
    json.member("cause", finding.cause);
    json.member("advice", finding.advice);
  });
}

template <class T>
void write_all(JsonWriter& json, const char* name, const std::vector<T>& all) {
  json.member(name, [&] {
    json.list([&] {
      for (const T& one : all) write(json, one);
    });
  });
}

}  // namespace

std::string Diagnosis::to_json() const {
  JsonWriter json(nullptr, 1);
  json.object([&] {
    json.member("samples", samples);
    json.member("integers_different", integers_different);
    write_all(json, "findings", findings);
    write_all(json, "layers", layers);
    write_all(json, "outputs", outputs);
    if (classes) {
      json.member("confusions", [&] {
        json.object([&] {
          json.member("floats", [&] { write(json, classes->floats); });
          json.member("simulated", [&] { write(json, classes->simulated); });
          json.member("integers", [&] { write(json, classes->integers); });
        });
      });
    }
    write_all(json, "worst", worst);
  });
  return std::move(json).text() + '\n';
}

}  // namespace quantrain::quant
