#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "framework/autograd/grad_check.hpp"
#include "framework/autograd/graph.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/text_table.hpp"
#include "framework/data/loader.hpp"
#include "framework/data/splits.hpp"
#include "framework/data/stream.hpp"
#include "framework/integer/code_ranges.hpp"
#include "framework/integer/integer_model.hpp"
#include "framework/metrics/metrics.hpp"
#include "framework/optim/adam.hpp"
#include "layers/layers.hpp"
#include "layers/training/fit.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/lowering/lowering.hpp"
#include "quant/prepare/batch_norm_folding.hpp"
#include "quant/prepare/scopes.hpp"
#include "quant/quantized_tensor.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/quant/networks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// Objects that were moved from, and indices, sizes and functions that do not exist. Each call runs
// in a process of its own. Its error's message begins with the given text; "fine" stands for no
// error.
namespace quantrain {
namespace {

using quant::test::mlp;
using quant::test::random_images;

constexpr int64_t kEnormous = int64_t{1} << 62;

struct Call {
  const char* name;
  std::function<void()> run;
  std::string text;  ///< the beginning of the error's message; "fine" if there is none
};

void check(const std::vector<Call>& calls) {
  for (const Call& call : calls) {
    INFO(call.name);
    const test::Child child = test::in_child([&]() -> std::string {
      try {
        call.run();
      } catch (const Error& error) {
        return error.what();
      }
      return "fine";
    });
    CHECK(child.signal == 0);
    CHECK(child.text.substr(0, call.text.size()) == call.text);
  }
}

/// Calls use(object) after the object was moved from.
template <class T, class Use>
std::function<void()> after_move(T object, const Use& use) {
  const auto shared = std::make_shared<T>(std::move(object));
  return [shared, use] {
    const T other = std::move(*shared);
    use(*shared);
  };
}

Dataset four() { return Dataset({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, {0, 1, 0, 1}, 2); }

std::shared_ptr<Codes> two_codes(const QParams& params) {
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(2);
  std::fill(codes->bytes.begin(), codes->bytes.end(), uint8_t{1});
  codes->params = params;
  return codes;
}

}  // namespace

TEST_CASE("an object that was moved from is unchanged, empty or refused",
          "[faults][misuse][serial]") {
  const test::TemporaryFolder folder;
  write_file(folder / "file", "text");
  const SampleArray floats = SampleArray::floats({4, 2}, std::vector<float>(8));
  const Stream stream([](int64_t) { return SampleGenerator(); }, {.shape = {2}, .samples = 3});
  const quant::QuantizedTensor codes(random_images({2, 3}, 1), {.bits = 8}, QScheme::kAffine);
  const std::string undefined = "[tensor] the tensor is undefined";
  const std::string without_integers = "[integers] the buffer is undefined";
  const std::string unprepared = "[Sequential] the network is not prepared";
  const Tensor rows = random_images({2, 12}, 1);
  const auto print = [](const auto& object) {
    std::ostringstream text;
    text << object;
  };
  Sequential prepared = mlp();
  quant::prepare_ptq(prepared, rows, quant::QConfig::int8());
  quant::calibrate(prepared, rows);
  const IntegerModel model = quant::convert(prepared, rows);

  check({
      {"loader",
       after_move(DataLoader{four(), {.batch = 2}},
                  [](DataLoader& loader) {
                    int64_t samples = 0;
                    for (const Batch& batch : loader) samples += batch.size();
                    if (samples != 4 || loader.batches() != 2) throw DataError("test", "lost");
                  }),
       "fine"},
      {"array", after_move(floats, [](SampleArray& x) { x.copy(9, {}); }), "[dataset] sample 9 is"},
      {"stream", after_move(stream, [](Stream& x) { DataLoader{x}.batches(); }), "fine"},
      {"matrix",
       after_move(
           ConfusionMatrix(3),
           [](ConfusionMatrix& x) { x.add(std::vector<int32_t>{2}, std::vector<int32_t>{1}); }),
       "fine"},
      {"codes", after_move(codes, [](quant::QuantizedTensor& x) { x.dequantize(); }), "fine"},
      {"file, read",
       after_move(InputFile(folder / "file"),
                  [](InputFile& x) {
                    std::vector<uint8_t> bytes(4);
                    x.read(bytes);
                  }),
       "[file] this InputFile was moved into another one: read from that one"},
      {"file, rewound",
       after_move(InputFile(folder / "file"), [](InputFile& x) { x.rewind(); }),
       "[file] this InputFile was moved into"},
      {"activation", after_move(Sigmoid(), [&](Sigmoid& x) { x(rows); }), "[elementwise] "},
      {"prepared batch norm",
       after_move(
           quant::PreparedBatchNorm(std::make_shared<quant::Folding>("norm", BatchNorm1d{12})),
           [&](quant::PreparedBatchNorm& x) { x(rows); }),
       "[PreparedBatchNorm] "},
      {"prepared batch norm's folding",
       after_move(
           quant::PreparedBatchNorm(std::make_shared<quant::Folding>("norm", BatchNorm1d{12})),
           [](quant::PreparedBatchNorm& x) { x.folding(); }),
       "[PreparedBatchNorm] "},
      {"table",
       after_move(TextTable("lr"),
                  [](TextTable& x) {
                    x.add({"a", "b"});
                  }),
       "[table] a row of 2 cells for 0 columns"},
      {"graph", after_move(Graph(sum(test::random_leaf({2}))), print), "fine"},
      {"program",
       after_move(model.program(), [](integer::Program& x) { IntegerModel{x}; }),
       "[program] there is no input"},
      {"Linear", after_move(Linear{12, 4}, [&](Linear& x) { x(rows); }), undefined},
      {"Conv2d",
       after_move(Conv2d{1, 2},
                  [&](Conv2d& x) {
                    x(random_images({1, 4, 4, 1}, 1));
                  }),
       undefined},
      {"BatchNorm1d", after_move(BatchNorm1d{12}, [&](BatchNorm1d& x) { x(rows); }), undefined},
      {"Dropout", after_move(Dropout{}, [&](Dropout& x) { x(rows); }), without_integers},
      {"Mean", after_move(Mean{1}, [&](Mean& x) { x(rows); }), "[Mean] there is no axis to reduce"},
      {"Max", after_move(Max{1}, [&](Max& x) { x(rows); }), "[Max] there is no axis to reduce"},
      {"Sequential", after_move(mlp(), [&](Sequential& x) { x(rows); }), "fine"},
      {"prepared",
       after_move(std::move(prepared), [&](Sequential& x) { quant::convert(x, rows); }),
       unprepared},
      {"FakeQuantize",
       after_move(quant::FakeQuantize(), [&](quant::FakeQuantize& x) { x(rows); }),
       without_integers},
  });
}

TEST_CASE("indices, sizes and functions that do not exist are errors", "[faults][misuse][serial]") {
  const SampleArray floats = SampleArray::floats({4, 2}, std::vector<float>(8));
  const SampleArray bytes = SampleArray::bytes({4, 2}, std::vector<uint8_t>(8));
  const std::vector<int32_t> labels{0, 1};
  const std::vector<double> halves{0.5, 0.5};
  const std::vector<float> rows(24, 0.5f);
  std::vector<uint8_t> codes(24);
  Sequential net = mlp();
  const Tensor example = random_images({2, 12}, 1);
  quant::prepare_ptq(net, example, quant::QConfig::int8());
  quant::calibrate(net, example);
  const IntegerModel model = quant::convert(net, example);
  const uint8_t* const inputs[] = {codes.data()};
  const Graph graph(sum(test::random_leaf({3})));
  const auto encode = [&](const QParams& params, const integer::InputFeatures& features) {
    return
        [&, params, features] { integer::encode_input(rows, params, features, codes, "encode"); };
  };

  check({
      {"bytes of sample 4", [&] { bytes.sample_bytes(4); }, "[dataset] sample 4 is outside [0, 4)"},
      {"bytes of sample -1", [&] { bytes.sample_bytes(-1); }, "[dataset] sample -1 is outside"},
      {"bytes of a huge sample", [&] { bytes.sample_bytes(kEnormous); }, "[dataset] sample 461168"},
      {"batch of a huge sample",
       [&] { floats.tensor(std::vector<int64_t>{kEnormous / 5}); },
       "[dataset] sample 92233"},
      {"copy to an empty view",
       [&] { floats.copy(0, {}); },
       "[dataset] a view of 0 elements has no room for a sample [2]"},
      {"bytes for floats",
       [&] { floats.tensor(Buffer<uint8_t>(8)); },
       "[dataset] an array of floats cannot make "},
      {"classes",
       [&] { class_counts(labels, kEnormous); },
       "[class_counts] number of classes is 461"},
      {"stratified by classes",
       [&] { stratified_indices(labels, kEnormous, halves); },
       "[class_counts] number of classes is 461"},
      {"split",
       [&] { split_indices(kEnormous, halves); },
       "[split] 4611686018427387904 samples cannot"},
      {"value of a program",
       [&] { static_cast<void>(model.program().value(99)); },
       "[program] value 99 does not exist"},
      {"value -1 of a program",
       [&] { static_cast<void>(model.program().value(-1)); },
       "[program] value -1 does not exist"},
      {"ranges of a value",
       [&] { static_cast<void>(integer::CodeRanges(model.program()).at(-1000000)); },
       "[code_ranges] value -1000000 does not exist"},
      {"node of a graph", [&] { graph.node(1); }, "[graph] node 1 does not exist: there are 1"},
      {"consumers in a graph", [&] { graph.consumers(-1); }, "[graph] node -1 does not exist"},
      {"graph, no function", [&] { graph.visit(nullptr); }, "[graph] visit has no function"},
      {"trace, no function",
       [&] { model.trace(2, inputs, nullptr); },
       "[IntegerModel] trace has no"},
      {"fit, no loss",
       [&] {
         Sequential one{Linear{2, 2}};
         Adam optimizer(one.parameters());
         DataLoader loader(four());
         fit(one, optimizer, loader, nullptr);
       },
       "[fit] there is no loss: give a function of a batch"},
      {"grad_check, no function",
       [&] { grad_check(nullptr, {}); },
       "[grad_check] there is no func"},
      {"lookup of no function",
       [&] {
         integer::code_values(nullptr, {{.bits = 8}, -1, {1.0f}, {0}});
       },
       "[lookup] the function is null"},
      {"codes without a scale",
       [&] {
         Tensor::from_codes({2}, two_codes({{.bits = 8}, -1, {}, {}})).floats();
       },
       "[tensor] expected one zero point for each scale and at least one scale, got 0 scales"},
      {"codes without zero points",
       [&] {
         Tensor::decoded({2}, two_codes({{.bits = 8}, -1, {1.0f}, {}}));
       },
       "[tensor] expected one zero point for each scale and at least one scale, got 1 scales"},
      {"codes with few scales",
       [&] {
         Tensor::from_codes({1, 2}, two_codes({{.bits = 8}, 1, {1.0f}, {0}})).floats();
       },
       "[tensor] parameters of 1 channels for axis 1 of [1, 2]"},
      {"codes along an axis that is not there",
       [&] {
         Tensor::from_codes({2}, two_codes({{.bits = 8}, 7, {1.0f}, {0}})).floats();
       },
       "[shape] no axis 7 in [2]"},
      {"input without a scale",
       encode({{.bits = 8}, -1, {}, {}}, {}),
       "[encode] expected one zero point for each scale and at least one scale, got 0 scales"},
      {"input with scales per channel",
       encode({{.bits = 8}, 0, {1.0f}, {0}}, {}),
       "[encode] codes of an input have one scale and at most "},
      {"input with scales of features but no offsets",
       encode({{.bits = 8}, -1, {1.0f}, {0}}, {{}, {1.0f, 1.0f}}),
       "[encode] 0 offsets and 2 scales of features"},
  });
}

}  // namespace quantrain
