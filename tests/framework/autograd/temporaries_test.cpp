#include "framework/autograd/graph.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/shared_array.hpp"
#include "framework/core/text_table.hpp"
#include "framework/integer/operation.hpp"
#include "framework/io/json.hpp"
#include "framework/io/safetensors.hpp"
#include "tests/compiles.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

template <class T>
constexpr bool kIsValue = !std::is_reference_v<T>;

}  // namespace

TEST_CASE("only named Floats give a pointer", "[autograd][temporaries]") {
  CHECK(std::is_convertible_v<const Floats&, const float*>);
  CHECK_FALSE(std::is_convertible_v<Floats, const float*>);
  CHECK_FALSE(QUANTRAIN_COMPILES(Floats, temporary().data()));
  const Tensor x = test::make_tensor({2}, {3, 4});
  CHECK(x.floats()[1] == 4.0f);
  CHECK(x.floats().size() == 2);
}

TEST_CASE("an unnamed tensor gives no pointer or reference into itself",
          "[autograd][temporaries]") {
  CHECK_FALSE(QUANTRAIN_COMPILES(Tensor, temporary().mutable_data()));
  CHECK_FALSE(std::is_pointer_v<decltype(Tensor().data())>);
  CHECK(kIsValue<decltype(Tensor().shape())>);
  CHECK(kIsValue<decltype(Tensor().codes())>);
  CHECK(kIsValue<decltype(Tensor().name())>);
  CHECK(kIsValue<decltype(Tensor().node())>);
  CHECK(kIsValue<decltype(Tensor().set_requires_grad(true))>);
  CHECK(kIsValue<decltype(Tensor().set_name(""))>);
  CHECK((relu(test::make_tensor({1}, {-1})).data()[0]) == 0.0f);
}

TEST_CASE("a temporary returns its lists by value, so that loops over them are safe",
          "[autograd][temporaries]") {
  const Tensor x = test::make_leaf({2}, {1, 2});
  std::vector<std::string> types;
  for (const GraphNode& node : Graph(sum(relu(x))).nodes()) types.emplace_back(node.type());
  CHECK(types == std::vector<std::string>{"relu", "sum"});
  CHECK(kIsValue<decltype(std::declval<Graph>().nodes())>);
  CHECK(kIsValue<decltype(std::declval<Graph>().node(0))>);
  CHECK(kIsValue<decltype(std::declval<Graph>().outputs())>);
  CHECK(kIsValue<decltype(std::declval<Graph>().leaves())>);
  CHECK(kIsValue<decltype(std::declval<Graph>().consumers(0))>);
  CHECK(kIsValue<decltype(Attributes().string(""))>);
  CHECK(kIsValue<decltype(Attributes().integers(""))>);
  CHECK_FALSE(QUANTRAIN_COMPILES(Attributes, temporary().begin()));
  CHECK(kIsValue<decltype(TensorFile().entries())>);
  CHECK(kIsValue<decltype(TensorFile().at(""))>);
  CHECK(kIsValue<decltype(TensorFile().metadata_at(""))>);
}

TEST_CASE("arrays give no pointer into a temporary", "[autograd][temporaries]") {
  CHECK_FALSE(QUANTRAIN_COMPILES(Buffer<float>, temporary().data()));
  CHECK_FALSE(QUANTRAIN_COMPILES(Buffer<float>, temporary().begin()));
  CHECK(kIsValue<decltype(Buffer<float>()[0])>);
  CHECK_FALSE(QUANTRAIN_COMPILES(SharedArray<int>, temporary().data()));
  CHECK_FALSE(QUANTRAIN_COMPILES(SharedArray<int>, temporary().end()));
  CHECK_FALSE(QUANTRAIN_COMPILES(Shape, temporary().begin()));
  CHECK_FALSE(std::is_convertible_v<Shape, std::span<const int64_t>>);
  CHECK(std::is_convertible_v<const Shape&, std::span<const int64_t>>);
  CHECK_FALSE(QUANTRAIN_COMPILES(Codes, temporary().u8()));
  CHECK_FALSE(QUANTRAIN_COMPILES(Codes, temporary().s8()));
  CHECK_FALSE(QUANTRAIN_COMPILES(Codes, temporary().view()));
}

TEST_CASE("nothing keeps a reference to an unnamed operation, document or table",
          "[autograd][temporaries]") {
  using integer::Operation;
  using integer::PreparedOperation;
  CHECK(std::is_constructible_v<PreparedOperation, const Operation&>);
  CHECK_FALSE(std::is_constructible_v<PreparedOperation, Operation>);
  CHECK_FALSE(QUANTRAIN_COMPILES(Operation, integer::product(temporary())));
  integer::for_each_type([]<class Op>(const Op*) {
    // An Operation made from an Op would be a temporary.
    CHECK_FALSE(std::is_constructible_v<PreparedOperation, const Op&>);
    CHECK(std::is_constructible_v<integer::Prepared<Op>, const Op&>);
    CHECK_FALSE(std::is_constructible_v<integer::Prepared<Op>, Op>);
  });
  CHECK_FALSE(QUANTRAIN_COMPILES(JsonDocument, temporary().root()));
  CHECK_FALSE(std::is_move_constructible_v<JsonDocument>);
  CHECK_FALSE(QUANTRAIN_COMPILES(TextTable, temporary().add({"cell"})));
}

}  // namespace quantrain
