#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/data/dataset.hpp"
#include "framework/data/loader.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "framework/integer/integer_model.hpp"
#include "framework/metrics/metrics.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/averaging.hpp"
#include "framework/optim/clip.hpp"
#include "framework/optim/rmsprop.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/layers.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/analysis/ranges.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/quant/networks.hpp"
#include "tests/tensors.hpp"

// Public calls with invalid arguments: each gives a result or a typed error, and never crashes.
namespace quantrain {
namespace {

constexpr int64_t kHuge = int64_t{1} << 61;

/// Unusual tensors, by name.
std::map<std::string, Tensor> strange_tensors() {
  std::map<std::string, Tensor> all;
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  all["undefined"] = Tensor();
  all["scalar"] = Tensor::full({}, 1.0f);
  all["vector"] = Tensor::full({3}, 1.0f);
  all["empty vector"] = Tensor::zeros({0});
  all["no rows"] = Tensor::zeros({0, 3});
  all["no columns"] = Tensor::zeros({2, 0});
  all["rows"] = test::random_leaf({2, 3});
  all["no images"] = Tensor::zeros({0, 4, 4, 1});
  all["no pixels"] = Tensor::zeros({2, 0, 4, 1});
  all["no channels"] = Tensor::zeros({2, 4, 4, 0});
  all["images"] = test::random_leaf({2, 4, 4, 1});
  all["signals"] = test::random_leaf({2, 9, 4});
  all["no signals"] = Tensor::zeros({2, 0, 4});
  all["five axes"] = Tensor::zeros({1, 2, 1, 2, 1});
  all["NaN"] = Tensor::full({2, 4, 4, 1}, nan);
  all["infinite rows"] = Tensor::full({2, 3}, std::numeric_limits<float>::infinity());
  all["codes"] = quant::test::random_images({2, 4, 4, 1}, 1);
  all["result"] = add(test::random_leaf({2, 3}), test::random_leaf({2, 3}));
  Tensor moved = Tensor::zeros({2, 3});
  const Tensor taken = std::move(moved);
  all["moved from"] = moved;  // NOLINT
  Tensor freed = sum(mul(all["rows"], all["rows"]));
  Tensor(freed).backward();
  all["differentiated"] = freed;
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(6);
  std::fill(codes->bytes.begin(), codes->bytes.end(), uint8_t{200});
  codes->params = {{.bits = 8}, -1, {0.5f}, {3}};
  all["only codes"] = Tensor::from_codes({2, 3}, codes);
  return all;
}

using Unary = std::function<void(const Tensor&)>;

/// Calls by name. A call that takes several tensors gets the same tensor for each of them.
std::map<std::string, Unary> calls() {
  std::map<std::string, Unary> all;
  all["reshape"] = [](const Tensor& x) { reshape(x, {-1}); };
  all["reshape huge"] = [](const Tensor& x) { reshape(x, {kHuge, kHuge, -1}); };
  all["reshape negative"] = [](const Tensor& x) { reshape(x, {-1, -1}); };
  all["flatten"] = [](const Tensor& x) { flatten(x); };
  all["transpose"] = [](const Tensor& x) { transpose(x); };
  all["transpose twice"] = [](const Tensor& x) { transpose(x, {0, 0}); };
  all["transpose huge"] = [](const Tensor& x) { transpose(x, {1 << 30, -(1 << 30)}); };
  all["add"] = [](const Tensor& x) { add(x, x); };
  all["add one"] = [](const Tensor& x) { add({x}); };
  all["add three"] = [](const Tensor& x) { add({x, x, x}); };
  all["add none"] = [](const Tensor&) { add(std::vector<Tensor>{}); };
  all["Add three"] = [](const Tensor& x) { Add{}(std::vector{x, x, x}); };
  all["sub"] = [](const Tensor& x) { sub(x, x); };
  all["mul"] = [](const Tensor& x) { mul(x, x); };
  all["Mean"] = [](const Tensor& x) { Mean{1}(x); };
  all["Mean of no axis"] = [](const Tensor& x) { Mean{std::numeric_limits<int>::min()}(x); };
  all["Max"] = [](const Tensor& x) { Max{{-1, 1}, {.keepdim = true}}(x); };
  all["mul by factors"] = [](const Tensor& x) { mul(global_avg_pool2d(x), x); };
  all["Mul"] = [](const Tensor& x) { Mul{}(x, x); };
  all["Mul by too many"] = [](const Tensor& x) { Mul{}(x, flatten(x)); };
  all["div"] = [](const Tensor& x) { div(x, x); };
  all["matmul"] = [](const Tensor& x) { matmul(x, x); };
  all["linear"] = [](const Tensor& x) { linear(x, x, x); };
  all["linear without bias"] = [](const Tensor& x) { linear(x, x); };
  all["conv2d"] = [](const Tensor& x) { conv2d(x, x, x); };
  all["conv2d huge"] = [](const Tensor& x) { conv2d(x, x, Tensor(), {.padding = {kHuge, kHuge}}); };
  all["conv2d groups"] = [](const Tensor& x) { conv2d(x, x, Tensor(), {.groups = kHuge}); };
  all["conv2d dilation"] = [](const Tensor& x) { conv2d(x, x, Tensor(), {.dilation = {2, 3}}); };
  all["conv2d dilation huge"] = [](const Tensor& x) {
    conv2d(x, x, Tensor(), {.dilation = {kHuge, kHuge}});
  };
  all["conv2d dilation 0"] = [](const Tensor& x) { conv2d(x, x, Tensor(), {.dilation = 0}); };
  all["conv1d"] = [](const Tensor& x) { conv1d(x, x, x); };
  all["conv1d huge"] = [](const Tensor& x) { conv1d(x, x, Tensor(), {.padding = kHuge}); };
  all["conv1d groups"] = [](const Tensor& x) { conv1d(x, x, Tensor(), {.groups = kHuge}); };
  all["conv1d dilation"] = [](const Tensor& x) { conv1d(x, x, Tensor(), {.dilation = kHuge}); };
  all["conv1d dilation negative"] = [](const Tensor& x) {
    conv1d(x, x, Tensor(), {.dilation = -1});
  };
  all["conv2d stride 0"] = [](const Tensor& x) { conv2d(x, x, Tensor(), {.stride = {0, 0}}); };
  all["max_pool2d"] = [](const Tensor& x) { max_pool2d(x, {.kernel = {2, 2}}); };
  all["max_pool2d huge"] = [](const Tensor& x) {
    max_pool2d(x, {.kernel = {kHuge, 1}, .padding = {kHuge / 2, 0}});
  };
  all["avg_pool2d"] = [](const Tensor& x) { avg_pool2d(x, {.kernel = {2, 2}}); };
  all["avg_pool2d negative"] = [](const Tensor& x) { avg_pool2d(x, {.kernel = {-1, 2}}); };
  all["max_pool1d"] = [](const Tensor& x) { max_pool1d(x, {.kernel = 2}); };
  all["max_pool1d huge"] = [](const Tensor& x) {
    max_pool1d(x, {.kernel = kHuge, .padding = kHuge / 2});
  };
  all["avg_pool1d"] = [](const Tensor& x) { avg_pool1d(x, {.kernel = 2, .padding = 1}); };
  all["global_avg_pool1d"] = [](const Tensor& x) { global_avg_pool1d(x); };
  all["global_max_pool1d"] = [](const Tensor& x) { global_max_pool1d(x); };
  all["global_avg_pool2d"] = [](const Tensor& x) { global_avg_pool2d(x); };
  all["global_max_pool2d"] = [](const Tensor& x) { global_max_pool2d(x); };
  all["batch_norm"] = [](const Tensor& x) { batch_norm(x, x, x, x, x, {.training = true}); };
  all["batch_norm evaluated"] = [](const Tensor& x) {
    batch_norm(x, x, x, x, x, {.training = false});
  };
  all["concat"] = [](const Tensor& x) { concat({x, x}, 0); };
  all["concat huge axis"] = [](const Tensor& x) { concat({x, x}, 1 << 30); };
  all["concat none"] = [](const Tensor&) { concat({}, 0); };
  all["pad"] = [](const Tensor& x) { pad(x, {1, 1}, {1, 1}); };
  all["slice"] = [](const Tensor& x) { slice(x, 1, {.begin = 1}); };
  all["slice in reverse"] = [](const Tensor& x) { slice(x, -1, {.step = -kHuge}); };
  all["slice of no axis"] = [](const Tensor& x) { slice(x, std::numeric_limits<int>::min(), {}); };
  all["slice by 0"] = [](const Tensor& x) { slice(x, 0, {.step = 0}); };
  all["upsample_nearest"] = [](const Tensor& x) { upsample_nearest(x, 2); };
  all["upsample_nearest huge"] = [](const Tensor& x) { upsample_nearest(x, {kHuge, 1}); };
  all["upsample_nearest negative"] = [](const Tensor& x) { upsample_nearest(x, -1); };
  all["Upsample"] = [](const Tensor& x) { Upsample{{2, 1}}(x); };
  all["ZeroPad2d"] = [](const Tensor& x) { ZeroPad2d{1}(x); };
  all["ZeroPad2d huge"] = [](const Tensor& x) { ZeroPad2d{kHuge}(x); };
  all["Slice"] = [](const Tensor& x) { Slice{-1, {.begin = 1}}(x); };
  all["pad huge"] = [](const Tensor& x) { pad(x, {kHuge, kHuge}, {kHuge, kHuge}); };
  all["pad2d"] = [](const Tensor& x) { pad2d(x, {1, 1}); };
  all["dropout"] = [](const Tensor& x) { dropout(x, {.p = 0.5f}); };
  all["dropout of all"] = [](const Tensor& x) { dropout(x, {.p = 1.0f}); };
  all["relu"] = [](const Tensor& x) { relu(x); };
  all["relu6"] = [](const Tensor& x) { relu6(x); };
  all["prelu"] = [](const Tensor& x) { prelu(x, x); };
  all["sigmoid"] = [](const Tensor& x) { sigmoid(x); };
  all["gelu"] = [](const Tensor& x) { gelu(x); };
  all["clamp"] = [](const Tensor& x) { clamp(x, -1.0f, 1.0f); };
  all["elementwise null"] = [](const Tensor& x) { elementwise(nullptr, x); };
  all["softmax"] = [](const Tensor& x) { softmax(x); };
  all["Softmax"] = [](const Tensor& x) { Softmax{}(x); };
  all["log_softmax"] = [](const Tensor& x) { log_softmax(x); };
  all["sum"] = [](const Tensor& x) { sum(x); };
  all["sum axis"] = [](const Tensor& x) { sum(x, 1); };
  all["sum huge axis"] = [](const Tensor& x) { sum(x, std::numeric_limits<int>::min()); };
  all["mean"] = [](const Tensor& x) { mean(x); };
  all["mean axis"] = [](const Tensor& x) { mean(x, -1); };
  all["mse_loss"] = [](const Tensor& x) { mse_loss(x, x); };
  all["l1_loss"] = [](const Tensor& x) { l1_loss(x, x); };
  all["huber_loss"] = [](const Tensor& x) { huber_loss(x, x); };
  all["binary cross entropy"] = [](const Tensor& x) { binary_cross_entropy_with_logits(x, x); };
  all["cross_entropy"] = [](const Tensor& x) { cross_entropy(x, std::vector<int32_t>{0, 1}); };
  all["cross_entropy of targets"] = [](const Tensor& x) { cross_entropy(x, x); };
  all["cross_entropy without labels"] = [](const Tensor& x) {
    cross_entropy(x, std::span<const int32_t>());
  };
  all["item"] = [](const Tensor& x) { static_cast<void>(x.item()); };
  all["floats"] = [](const Tensor& x) { static_cast<void>(x.floats()); };
  all["mutable_data"] = [](const Tensor& x) {
    Tensor same = x;
    static_cast<void>(same.mutable_data());
  };
  all["codes"] = [](const Tensor& x) { static_cast<void>(x.codes()); };
  all["detach"] = [](const Tensor& x) { x.detach(); };
  all["backward"] = [](const Tensor& x) { Tensor(x).backward(); };
  all["backward of a sum"] = [](const Tensor& x) { sum(x).backward(); };
  all["set_grad of itself"] = [](const Tensor& x) { Tensor(x).set_grad(x); };
  all["set_requires_grad"] = [](const Tensor& x) { Tensor(x).set_requires_grad(true); };
  all["Sgd"] = [](const Tensor& x) { Sgd({x}).step(); };
  all["Sgd twice"] = [](const Tensor& x) { Sgd({x, x}).step(); };
  all["Adam"] = [](const Tensor& x) { Adam({x}).step(); };
  all["RmsProp"] = [](const Tensor& x) { RmsProp({x}).step(); };
  all["ExponentialAverage"] = [](const Tensor& x) { ExponentialAverage({x}).update(); };
  all["clip_grad_norm"] = [](const Tensor& x) { clip_grad_norm(std::vector<Tensor>{x, x}, 1.0f); };
  all["clip_grad_value"] = [](const Tensor& x) { clip_grad_value(std::vector<Tensor>{x}, 0.0f); };
  all["predicted_classes"] = [](const Tensor& x) { static_cast<void>(predicted_classes(x)); };
  all["count_top_k"] = [](const Tensor& x) {
    static_cast<void>(count_top_k(x, std::vector<int32_t>{0, -7}, kHuge));
  };
  all["mean_squared_error"] = [](const Tensor& x) { static_cast<void>(mean_squared_error(x, x)); };
  all["Linear layer"] = [](const Tensor& x) { Linear{3, 2}(x); };
  all["Linear of tensors"] = [](const Tensor& x) { Linear(x, x)(x); };
  all["Conv2d layer"] = [](const Tensor& x) { Conv2d{1, 2, {.kernel = 3, .padding = 1}}(x); };
  all["Conv1d layer"] = [](const Tensor& x) { Conv1d{4, 2, {.padding = 1, .dilation = 2}}(x); };
  all["Conv1d of tensors"] = [](const Tensor& x) { Conv1d(x, x, {})(x); };
  all["MaxPool1d layer"] = [](const Tensor& x) { MaxPool1d{2}(x); };
  all["GlobalAvgPool1d"] = [](const Tensor& x) { GlobalAvgPool1d{}(x); };
  all["Reshape layer"] = [](const Tensor& x) { Reshape{{-1, 3}}(x); };
  all["Reshape layer huge"] = [](const Tensor& x) { Reshape{{kHuge, kHuge}}(x); };
  all["BatchNorm1d"] = [](const Tensor& x) { BatchNorm1d{3}(x); };
  all["BatchNorm2d"] = [](const Tensor& x) { BatchNorm2d{1}(x); };
  all["MaxPool2d layer"] = [](const Tensor& x) { MaxPool2d{2}(x); };
  all["GlobalMaxPool2d"] = [](const Tensor& x) { GlobalMaxPool2d{}(x); };
  all["PReLU"] = [](const Tensor& x) { PReLU{3}(x); };
  all["Dropout"] = [](const Tensor& x) { Dropout{}(x); };
  all["Add of one"] = [](const Tensor& x) { Add{}(x); };
  all["Concat of none"] = [](const Tensor&) { Concat{}(std::vector<Tensor>{}); };
  all["Sequential of nothing"] = [](const Tensor& x) { Sequential{}(x); };
  all["summary"] = [](const Tensor& x) {
    Sequential net{Linear{3, 2}};
    static_cast<void>(summary(net, x));
  };
  all["prepare_ptq and convert"] = [](const Tensor& x) {
    Sequential net{Linear{3, 2}};
    quant::QConfig config = quant::QConfig::int8();
    config.input_range = {0.0f, 1.0f};
    quant::prepare_ptq(net, x, config);
    quant::calibrate(net, x);
    const IntegerModel model = quant::convert(net, x);
    static_cast<void>(quant::verify_parity(net, model, x));
  };
  all["prepare_qat of images"] = [](const Tensor& x) {
    Sequential net{Conv2d{1, 2, {.kernel = 3}}, ReLU{}};
    quant::prepare_qat(net, x, quant::QConfig::int8());
    net(x);
    quant::convert(net, x);
  };
  all["convert unprepared"] = [](const Tensor& x) {
    Sequential net{Linear{3, 2}};
    quant::convert(net, x);
  };
  all["plan"] = [](const Tensor& x) {
    Sequential net{Linear{3, 2}};
    static_cast<void>(quant::plan(net, x));
  };
  all["ranges"] = [](const Tensor&) {
    Sequential net{Linear{3, 2}};
    static_cast<void>(quant::ranges(net));
  };
  all["verify_parity of another network"] = [](const Tensor& x) {
    Sequential net = quant::test::mlp();
    const Tensor example = quant::test::random_images({2, 12}, 1);
    quant::prepare_ptq(net, example, quant::QConfig::int8());
    quant::calibrate(net, example);
    const IntegerModel model = quant::convert(net, example);
    static_cast<void>(quant::verify_parity(net, model, x));
  };
  return all;
}

/// Returns "result", "error", or a description of the fault.
std::string outcome(const std::function<void()>& f) {
  try {
    f();
    return "result";
  } catch (const Error&) {
    return "error";
  } catch (const std::bad_alloc&) {
    return "error";  // more memory than any machine has
  } catch (const std::exception& error) {
    return std::string("not an Error: ") + error.what();
  }
}

void check_outcome(const test::Child& child) {
  CHECK(child.signal == 0);
  CHECK((child.text == "result" || child.text == "error"));
}

}  // namespace

TEST_CASE("calls take any tensor, or refuse it with an error", "[faults][misuse][serial]") {
  // For each call, one child process tries all tensors, one after the other. If the process
  // crashes, each tensor gets a process of its own.
  const std::map<std::string, Tensor> tensors = strange_tensors();
  std::map<std::string, int> outcomes;
  for (const auto& [call, f] : calls()) {
    const auto row = test::in_child([&f = f, &tensors] {
      std::string text;
      for (const auto& [name, tensor] : tensors) {
        const std::string what = outcome([&f, &tensor = tensor] { f(tensor); });
        if (what != "result" && what != "error") text += name + ": " + what + "; ";
        text += what == "result" ? '+' : '-';
      }
      return text;
    });
    INFO(call);
    CHECK(row.text.size() == tensors.size());
    CHECK(row.text.find_first_not_of("+-") == std::string::npos);
    if (row.signal == 0) {
      for (const char c : row.text) ++outcomes[std::string(1, c)];
      continue;
    }
    for (const auto& [name, tensor] : tensors) {
      INFO("tensor " << name);
      check_outcome(
          test::in_child([&f = f, &tensor = tensor] { return outcome([&] { f(tensor); }); }));
    }
  }
  // The calls neither refuse everything nor accept everything.
  CHECK(outcomes["+"] > 300);
  CHECK(outcomes["-"] > 600);
}

TEST_CASE("calls with empty, huge or invalid arguments return or throw, and do not crash",
          "[faults][misuse][serial]") {
  const std::vector<float> floats(24, 0.5f);
  const std::vector<int32_t> labels(2, 0);
  Sequential net = quant::test::mlp();
  const Tensor example = quant::test::random_images({2, 12}, 1);
  quant::prepare_ptq(net, example, quant::QConfig::int8());
  quant::calibrate(net, example);
  const IntegerModel model = quant::convert(net, example);
  std::vector<int32_t> classes(2);

  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"huge Shape",
       [] {
         static_cast<void>(Shape{kHuge, kHuge}.elements());
       }},
      {"huge Tensor",
       [] {
         Tensor::zeros({kHuge, 4});
       }},
      {"Tensor of a negative extent", [] { Tensor::zeros({-1}); }},
      {"Tensor from too few",
       [&] {
         Tensor::from({5, 5}, floats);
       }},
      {"Tensor of no codes", [] { Tensor::from_codes({2}, nullptr); }},
      {"Linear of no features",
       [] {
         Linear{0, 3};
       }},
      {"huge Linear",
       [] {
         Linear{kHuge, kHuge};
       }},
      {"huge Conv2d",
       [] {
         Conv2d{kHuge, kHuge, {.kernel = 3, .groups = kHuge}};
       }},
      {"huge Conv1d",
       [] {
         Conv1d{kHuge, kHuge, {.groups = kHuge, .dilation = kHuge}};
       }},
      {"BatchNorm2d of no channels", [] { BatchNorm2d{0}; }},
      {"huge PReLU", [] { PReLU{kHuge}; }},
      {"Dropout of NaN", [] { Dropout{std::nanf("")}; }},
      {"MaxPool2d of an empty window",
       [] {
         MaxPool2d{0}(Tensor::zeros({1, 2, 2, 1}));
       }},
      {"Sgd of no parameters", [] { Sgd({}); }},
      {"Adam of NaN", [] { Adam({test::random_leaf({2})}, {.learning_rate = std::nanf("")}); }},
      {"empty Dataset",
       [] {
         Dataset({0, 2}, {}, {}, 2);
       }},
      {"huge Dataset",
       [] {
         Dataset({kHuge, 2}, {}, {}, 2);
       }},
      {"Dataset of too few labels",
       [] {
         Dataset({2, 1}, {1, 2}, {0}, 2);
       }},
      {"Dataset of wrong labels",
       [] {
         Dataset({2, 1}, {1, 2}, {0, -5}, 2);
       }},
      {"loader of huge batches",
       [] {
         for (Batch& batch : DataLoader{Dataset({2, 1}, {1, 2}, {0, 1}, 2), {.batch = kHuge}})
           batch.size();
       }},
      {"loader of no source", [] { DataLoader{std::shared_ptr<const BatchSource>()}; }},
      {"model of no program", [] { IntegerModel{integer::Program{}}; }},
      {"model from nothing", [] { IntegerModel::load(std::span<const uint8_t>()); }},
      {"model from a folder", [] { IntegerModel::load("/"); }},
      {"model runs nothing", [&] { model.run(std::span<const float>(), std::span<int32_t>()); }},
      {"model runs too little",
       [&] { model.run(std::span<const float>(floats).first(7), std::span<float>()); }},
      {"model classifies with too much room",
       [&] { model.classify(std::span<const float>(floats).first(12), classes); }},
      {"model of an input that is not there", [&] { model.input_shape(kHuge); }},
      {"model's memory for a huge batch", [&] { static_cast<void>(model.memory(kHuge)); }},
      {"model's memory for a negative batch", [&] { static_cast<void>(model.memory(-1)); }},
      {"C99 of no program", [] { export_c99(integer::Program{}); }},
      {"C99 by a bad name", [&] { export_c99(model.program(), {.name = "int"}); }},
      {"metrics of nothing", [] { static_cast<void>(predicted_classes(Tensor())); }},
      {"state of another network",
       [&] {
         Sequential other{Linear{2, 2}};
         copy_state(net, other);
       }},
      {"an empty path", [&] { model.save(""); }},
  };
  for (const auto& [name, f] : calls) {
    INFO(name);
    check_outcome(test::in_child([&f = f] { return outcome(f); }));
  }
}

}  // namespace quantrain
