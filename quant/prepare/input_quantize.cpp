#include "quant/prepare/input_quantize.hpp"

#include <limits>
#include <utility>
#include <vector>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/masked.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/integer/saturation.hpp"
#include "layers/dry_run.hpp"

namespace quantrain::quant {
namespace {

constexpr QType kInputType{.bits = 8, .is_signed = false, .narrow = false};

class InputQuantizeNode : public Node {
 public:
  InputQuantizeNode(const QParams& params, Buffer<uint8_t> mask)
      : scale_(params.scale[0]), zero_point_(params.zero_point[0]), mask_(std::move(mask)) {}

  std::string_view type() const override { return "input_quantize"; }
  Attributes attributes() const override {
    return {{"scale", static_cast<double>(scale_)}, {"zero_point", int64_t{zero_point_}}};
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    if (!needs_grad(0)) return {Tensor()};
    return {masked(grad_y, mask_)};
  }

 private:
  float scale_;
  int32_t zero_point_;
  Buffer<uint8_t> mask_;  // empty: all of the gradient passes
};

constexpr int kDigits = 6;  // digits of a printed number; more if two texts would be equal

std::string describe(const QParams& params,
                     const integer::InputFeatures* features,
                     size_t feature,
                     int digits) {
  const Range range = params.float_range();
  TextStream text;
  text.precision(digits);
  text << '[' << range.min << ", " << range.max << "] (" << params << "), ";
  if (features == nullptr || features->empty()) {
    text << "no features";
  } else {
    text << features->size() << " features, ";
    if (feature == 0) {
      text << "the first";
    } else {
      text << "index " << feature;
    }
    text << " with offset " << features->offset[feature] << " and scale "
         << features->scale[feature];
  }
  return text.str();
}

Tensor tensor_of(const std::vector<float>& values) {
  return Tensor::from({static_cast<int64_t>(values.size())}, values);
}

}  // namespace

std::shared_ptr<const Codes> input_codes(const Tensor& x) {
  return x.kind() == ValueKind::kFloat ? x.source_codes() : activation_codes(x);
}

std::string describe_input(const QParams& params, const integer::InputFeatures* features) {
  return describe(params, features, 0, kDigits);
}

std::pair<std::string, std::string> describe_inputs(const QParams& a,
                                                    const integer::InputFeatures* features_a,
                                                    const QParams& b,
                                                    const integer::InputFeatures* features_b) {
  size_t feature = 0;
  if (features_a != nullptr && features_b != nullptr && features_a->size() == features_b->size()) {
    const auto same = [&](size_t f) {
      return features_a->offset[f] == features_b->offset[f] &&
             features_a->scale[f] == features_b->scale[f];
    };
    const size_t count = features_a->scale.size();
    while (feature < count && same(feature)) ++feature;
    if (feature == count) feature = 0;  // only the parameters differ
  }
  std::pair<std::string, std::string> texts;
  for (const int digits : {kDigits, std::numeric_limits<float>::max_digits10}) {
    texts = {describe(a, features_a, feature, digits), describe(b, features_b, feature, digits)};
    if (texts.first != texts.second) break;
  }
  return texts;
}

InputQuantize::InputQuantize(QParams params,
                             std::shared_ptr<const integer::InputFeatures> features,
                             std::string name)
    : params_(std::move(params)), features_(std::move(features)), input_(std::move(name)) {
  check_activation(params_, input_);
  if (!(params_.type == kInputType))
    throw QuantError(input_, "an input has unsigned codes of 8 bits, got ", params_);
  if (features_ != nullptr && features_->empty()) features_ = nullptr;
  add_buffer({"scale", tensor_of(params_.scale), true});
  add_buffer({"zero_point", IntegerBuffer({1}, {.value = params_.zero_point[0]}), true});
  add_buffer("phase", saved_phase());
  if (features_ == nullptr) return;
  validate(*features_, features_->size(), input_);
  add_buffer({"feature_offset", tensor_of(features_->offset), true});
  add_buffer({"feature_scale", tensor_of(features_->scale), true});
}

Tensor InputQuantize::forward(const Tensor& x) {
  std::shared_ptr<const Codes> codes = input_codes(x);
  return codes != nullptr ? pass_codes(x, std::move(codes)) : quantize_floats(x);
}

Tensor InputQuantize::pass_codes(const Tensor& x, std::shared_ptr<const Codes> codes) const {
  const Codes own{.bytes = {}, .params = params_, .features = features_};
  if (!codes->same_meaning(own)) {
    const auto [given, expected] =
        describe_inputs(codes->params, codes->features.get(), params_, features_.get());
    throw QuantError(
        input_,
        "the codes of this input mean ",
        given,
        ", but the network was prepared for ",
        expected,
        ": declare the data as you declared the example for prepare_qat or prepare_ptq");
  }
  return in_float() ? x : result(x, std::move(codes), {});
}

Tensor InputQuantize::quantize_floats(const Tensor& x) {
  if (features_ != nullptr) {
    throw QuantError(input_,
                     "the input is floats without codes, but the network was prepared for ",
                     describe_input(params_, features_.get()),
                     ": encode raw values with the data set that declares the features "
                     "(Dataset::from_floats), and give the network its batches");
  }
  const bool checks = phase() == Phase::kCalibrating && !DryRun::on();
  if (in_float() && !checks) return x;
  const int64_t n = x.elements();
  const Floats values = x.floats();
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(n);
  codes->params = params_;
  Buffer<uint8_t> mask((n + 7) / 8);
  const auto size = static_cast<size_t>(n);
  const int64_t outside = integer::encode_input(
      {values.data(), size}, params_, {}, {codes->bytes.data(), size}, input_, mask.data());
  if (DryRun::on()) return in_float() ? x : result(x, std::move(codes), std::move(mask));
  integer::check_outside(checks ? Outside::kRefuse : outside_,
                         integer::EncodedValues{.values = {values.data(), size},
                                                .outside = outside,
                                                .samples = x.rank() > 1 ? x.dim(0) : 1,
                                                .columns = x.rank() > 0 ? x.dim(-1) : 1},
                         params_,
                         {},
                         input_,
                         "the network's input",
                         checks ? "prepare the network for a range that holds them"
                                : "pass values in the units of the training data, or call "
                                  "quant::set_outside(net, Outside::kSaturate)");
  if (in_float()) return x;
  std::atomic_ref(saturated_).fetch_add(outside);
  return result(x, std::move(codes), std::move(mask));
}

Tensor InputQuantize::result(const Tensor& x,
                             std::shared_ptr<const Codes> codes,
                             Buffer<uint8_t> mask) const {
  Tensor y;
  if (simulation() == Simulation::kInteger) {
    y = Tensor::from_codes(x.shape(), std::move(codes));
  } else {
    y = Tensor::empty(x.shape());
    codes->to_float(x.shape(), y.mutable_data());
  }
  return record<InputQuantizeNode>(std::move(y), {x}, params_, std::move(mask));
}

}  // namespace quantrain::quant
