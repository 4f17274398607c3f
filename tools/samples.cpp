// What data mean for a model, and batches of them.
#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/data/features.hpp"
#include "framework/integer/saturation.hpp"
#include "framework/metrics/evaluate.hpp"
#include "layers/evaluate.hpp"
#include "quant/prepare/scopes.hpp"
#include "tools/command.hpp"
#include "tools/data.hpp"
#include "tools/flags.hpp"

namespace quantrain::tools {
namespace {

constexpr int64_t kRowsForRange = 4096;
/// Ranges that networks of images are trained on.
constexpr Range kOfBytes[] = {{0.0f, 1.0f}, {-1.0f, 1.0f}, {0.0f, 255.0f}};

integer::InputFeatures features_from(const DataFlags& flags, int64_t channels) {
  std::vector<float> mean = numbers("--mean", flags.mean);
  std::vector<float> deviation = numbers("--deviation", flags.deviation);
  if (mean.empty() && deviation.empty()) return {};
  if (mean.empty()) mean = {0.0f};
  if (deviation.empty()) deviation = {1.0f};
  const auto widen = [&](std::vector<float>& values, const char* name) {
    if (values.size() == 1) values.resize(static_cast<size_t>(channels), values[0]);
    if (std::ssize(values) != channels)
      throw WrongCall(
          name, "has ", values.size(), " numbers, the data have ", channels, " channels");
  };
  widen(mean, "--mean");
  widen(deviation, "--deviation");
  for (const float value : deviation) {
    if (!(value > 0.0f)) throw WrongCall("--deviation", "numbers must be positive, got ", value);
  }
  return {std::move(mean), std::move(deviation)};
}

bool near(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::fabs(x - y) <= 1e-5f * std::max({1.0f, std::fabs(x), std::fabs(y)});
  });
}

std::string normalization_text(const integer::InputFeatures& features) {
  if (features.empty()) return "none";
  TextStream text;
  text << "mean " << features.offset[0] << ", deviation " << features.scale[0];
  if (features.size() > 1) text << ", ... (" << features.size() << " channels)";
  return std::move(text).str();
}

/// z of the ends of a range of x, over all channels.
Range range_of(Range raw, const integer::InputFeatures& features) {
  if (features.empty()) return raw;
  Range z{INFINITY, -INFINITY};
  for (size_t f = 0; f < features.scale.size(); ++f) {
    z.min = std::min(z.min, integer::feature_value(raw.min, features.offset[f], features.scale[f]));
    z.max = std::max(z.max, integer::feature_value(raw.max, features.offset[f], features.scale[f]));
  }
  return z;
}

Range range_from(const DataFlags& flags) {
  const std::vector<float> ends = numbers("--range", flags.range);
  if (ends.size() != 2 || !(ends[0] < ends[1]))
    throw WrongCall("--range", '"', flags.range, "\": write the smaller and the larger value: 0,1");
  return {ends[0], ends[1]};
}

/// What bytes mean: what --range says; or the model's range, if bytes usually have it; or [0, 1].
Range bytes_range(const DataFlags& flags, Range of_model) {
  if (!flags.range.empty()) return range_from(flags);
  const bool is_usual =
      std::find(std::begin(kOfBytes), std::end(kOfBytes), of_model) != std::end(kOfBytes);
  return is_usual ? of_model : kOfBytes[0];
}

/// How much larger the model's codes are than values of int8; nothing if those are numbers.
/// Throws: DataError if a quantized .onnx file takes no int8: then they might be either.
std::optional<int32_t> int8_offset(const Data& data, const Model& model, const QParams& params) {
  if (!data.is_int8) return std::nullopt;
  if (params.type.is_signed) return 0;
  if (model.int8_offset || model.kind == Model::Kind::kFloat || model.format != "ONNX")
    return model.int8_offset;
  throw DataError(data.path,
                  "holds int8, and the input of ",
                  model.path,
                  " has no codes of int8: save the real values as floats");
}

/// Batches of data in one of the forms.
class Source : public BatchSource {
 public:
  Source(std::shared_ptr<const Data> data, Reading reading, Form form, std::vector<int64_t> rows)
      : data_(std::move(data)), reading_(std::move(reading)), form_(form), rows_(std::move(rows)) {
    if (!reading_.features.empty())
      features_ = std::make_shared<const integer::InputFeatures>(reading_.features);
    if (rows_.empty()) rows_ = spread(data_->size, 0);
  }

  std::optional<int64_t> samples() const override { return std::ssize(rows_); }
  Reader read(const Pass&) const override {
    return [own = *this](std::span<const int64_t> indices) { return own.batch(indices); };
  }

 private:
  int64_t width() const { return Shape(std::span<const int64_t>(data_->shape)).elements(); }

  void raw(int64_t row, float* to) const {
    const int64_t n = width();
    if (data_->bytes.empty()) {
      std::copy_n(data_->floats.begin() + row * n, n, to);
      if (!data_->is_int8 || !reading_.int8_offset) return;
      const QParams& params = *reading_.params;
      const auto zero = static_cast<float>(params.zero_point[0] - *reading_.int8_offset);
      for (int64_t i = 0; i < n; ++i) to[i] = params.scale[0] * (to[i] - zero);
      return;
    }
    const uint8_t* const bytes = data_->bytes.data() + row * n;
    const float step = (reading_.raw.max - reading_.raw.min) / 255.0f;
    for (int64_t i = 0; i < n; ++i) {
      // A quotient by 255 is what everyone else computes for the usual range.
      to[i] = reading_.raw == Range{0.0f, 1.0f}
                  ? static_cast<float>(bytes[i]) / 255.0f
                  : reading_.raw.min + step * static_cast<float>(bytes[i]);
    }
  }

  Batch batch(std::span<const int64_t> indices) const {
    const int64_t n = width();
    std::vector<int64_t> extents = data_->shape;
    extents.insert(extents.begin(), std::ssize(indices));
    const Shape shape{std::span<const int64_t>(extents)};
    std::vector<float> x(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < indices.size(); ++i)
      raw(rows_[static_cast<size_t>(indices[i])], x.data() + static_cast<int64_t>(i) * n);
    Batch batch;
    // An autoencoder gives z, in whatever form it takes its input.
    if (data_->target_is_input) {
      std::vector<float> z = x;
      batch.targets.push_back(floats(target_shape(indices), z, true));
    }
    batch.input =
        form_ == Form::kCodes ? codes(shape, x) : floats(shape, x, form_ == Form::kFloats);
    add_targets(indices, batch);
    return batch;
  }

  Shape target_shape(std::span<const int64_t> indices) const {
    std::vector<int64_t> extents = data_->target_shape;
    extents.insert(extents.begin(), std::ssize(indices));
    return Shape{std::span<const int64_t>(extents)};
  }

  /// x, or z.
  Tensor floats(const Shape& shape, std::vector<float>& x, bool normalized) const {
    for (size_t i = 0; normalized && features_ != nullptr && i < x.size(); ++i)
      x[i] = integer::feature_value(x, i, *features_);
    return Tensor::from(shape, x);
  }

  Tensor codes(const Shape& shape, const std::vector<float>& x) const {
    auto codes = std::make_shared<Codes>();
    codes->params = *reading_.params;
    codes->features = features_;
    codes->bytes = Buffer<uint8_t>(shape.elements());
    const std::span<uint8_t> bytes(codes->bytes.data(), x.size());
    const int64_t outside =
        integer::encode_input(x, *reading_.params, reading_.features, bytes, data_->path);
    integer::check_outside(
        Outside::kRefuseMost,
        integer::EncodedValues{
            .values = x, .outside = outside, .samples = shape[0], .columns = shape.back()},
        *reading_.params,
        reading_.features,
        data_->path,
        "the input",
        "say what the values mean with --range, --mean and --deviation");
    return Tensor::decoded(shape, std::move(codes));
  }

  void add_targets(std::span<const int64_t> indices, Batch& batch) const {
    if (data_->target_is_input) return;
    for (const int64_t i : indices) {
      const auto row = static_cast<size_t>(rows_[static_cast<size_t>(i)]);
      if (!data_->labels.empty()) batch.labels.push_back(data_->labels[row]);
    }
    if (data_->targets.empty()) return;
    const Shape shape = target_shape(indices);
    const int64_t n = std::ssize(data_->targets) / data_->size;
    std::vector<float> targets;
    for (const int64_t i : indices) {
      const auto first = data_->targets.begin() + rows_[static_cast<size_t>(i)] * n;
      targets.insert(targets.end(), first, first + n);
    }
    batch.targets.push_back(Tensor::from(shape, targets));
  }

  std::shared_ptr<const Data> data_;
  Reading reading_;
  Form form_;
  std::vector<int64_t> rows_;
  std::shared_ptr<const integer::InputFeatures> features_;
};

}  // namespace

Range raw_range(Range z, const integer::InputFeatures& features) {
  Range raw = z;
  if (!features.empty()) {
    raw = {-INFINITY, INFINITY};
    for (size_t f = 0; f < features.scale.size(); ++f) {
      raw.min = std::max(raw.min, integer::raw_value(z.min, features.offset[f], features.scale[f]));
      raw.max = std::min(raw.max, integer::raw_value(z.max, features.offset[f], features.scale[f]));
    }
  }
  for (const Range usual : kOfBytes) {
    const float code = (usual.max - usual.min) / 255.0f;
    if (std::fabs(raw.min - usual.min) < code && std::fabs(raw.max - usual.max) < code)
      return usual;
  }
  return raw;
}

Reading reading_of(const DataFlags& flags, const Model& model, const Data& data) {
  const int64_t channels = data.shape.empty() ? 1 : data.shape.back();
  Reading reading{.features = features_from(flags, channels)};
  const std::optional<Meaning> meaning = model.meaning();
  if (meaning) {
    const bool given = !reading.features.empty();
    if (given && !(near(reading.features.offset, meaning->features.offset) &&
                   near(reading.features.scale, meaning->features.scale)))
      throw DataError(model.path,
                      "was made for normalization ",
                      normalization_text(meaning->features),
                      ", and the flags say ",
                      normalization_text(reading.features),
                      ": leave --mean and --deviation away");
    reading.features = meaning->features;
    reading.params = meaning->params;
    reading.int8_offset = int8_offset(data, model, meaning->params);
    reading.range = meaning->params.float_range();
    reading.input = raw_range(reading.range, reading.features);
    reading.raw = bytes_range(flags, reading.input);
    if (flags.range.empty() || !data.bytes.empty()) return reading;
    if (reading.int8_offset)
      throw DataError(data.path,
                      "holds int8, which are codes of ",
                      model.path,
                      ": leave --range away, or save the values as floats");
    // The range of floats is the model's.
    const float code = (reading.input.max - reading.input.min) / 255.0f;
    if (std::fabs(reading.raw.min - reading.input.min) > code ||
        std::fabs(reading.raw.max - reading.input.max) > code)
      throw DataError(model.path,
                      "was made for values from ",
                      reading.input.min,
                      " to ",
                      reading.input.max,
                      ", and --range says ",
                      flags.range,
                      ": leave --range away");
    return reading;
  }
  if (!flags.range.empty()) {
    reading.range = range_of(range_from(flags), reading.features);
  } else if (!data.bytes.empty()) {
    reading.range = range_of(kOfBytes[0], reading.features);
  } else {
    const int64_t width = Shape(std::span<const int64_t>(data.shape)).elements();
    std::vector<float> rows;
    for (const int64_t i : spread(data.size, kRowsForRange)) {
      const auto first = data.floats.begin() + i * width;
      rows.insert(rows.end(), first, first + width);
    }
    // Without features, all values have one range.
    integer::InputFeatures one = reading.features;
    if (one.empty()) one = {{0.0f}, {1.0f}};
    reading.range = percentile_range(rows, one);
  }
  reading.params = integer::input_params(reading.range, "--range");
  reading.input = raw_range(reading.range, reading.features);
  reading.raw = bytes_range(flags, reading.input);
  return reading;
}

std::shared_ptr<const BatchSource> samples_of(std::shared_ptr<const Data> data,
                                              const Reading& reading,
                                              Form form,
                                              std::vector<int64_t> indices) {
  return std::make_shared<const Source>(std::move(data), reading, form, std::move(indices));
}

Samples::Samples(const DataFlags& flags, const Model& model)
    : Samples(std::make_shared<const Data>(read_data(flags, model)), flags, model) {}

Samples::Samples(std::shared_ptr<const Data> read, const DataFlags& flags, const Model& model)
    : data(std::move(read)), reading(reading_of(flags, model, *data)) {}

Form form_of(const Model& model) {
  return model.kind == Model::Kind::kFloat      ? Form::kFloats
         : model.kind == Model::Kind::kPrepared ? Form::kCodes
                                                : Form::kRaw;
}

DataLoader Samples::loader(const Model& model, int64_t count, int64_t batch) const {
  return loader(form_of(model), spread(data->size, count), {.batch = batch});
}

DataLoader Samples::loader(Form form,
                           const std::vector<int64_t>& rows,
                           LoaderOptions options) const {
  return DataLoader(samples_of(data, reading, form, rows), std::move(options));
}

Metrics evaluate_model(Model& model, const DataLoader& batches) {
  if (model.integer) return evaluate(*model.integer, batches);
  const ComputeAsKind as_kind(model);
  return evaluate(*model.network, batches);
}

}  // namespace quantrain::tools
