#include "framework/integer/operation.hpp"

#include <algorithm>

namespace quantrain::integer {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

template <class Op>
concept HasProduct = requires(const Op& op) {
  op.product;
};

}  // namespace

std::string_view type(const Operation& op) {
  return std::visit([](const auto& o) { return o.kType; }, op);
}

std::string_view kernel(const Operation& op) {
  return std::visit([](const auto& o) { return o.kernel(); }, op);
}

std::vector<int64_t> input_sizes(const Operation& op) {
  return std::visit([](const auto& o) { return o.input_sizes(); }, op);
}

int64_t output_size(const Operation& op) {
  return std::visit([](const auto& o) { return o.output_size(); }, op);
}

void validate(const Operation& op, std::string_view where) {
  std::visit([&](const auto& o) { o.validate(where); }, op);
}

const QuantizedProduct* product(const Operation& op) {
  return std::visit(
      [](const auto& o) -> const QuantizedProduct* {
        if constexpr (HasProduct<std::decay_t<decltype(o)>>) return &o.product;
        return nullptr;
      },
      op);
}

bool gives_accumulators(const Operation& op) {
  const QuantizedProduct* const p = product(op);
  return p != nullptr && !p->output;
}

int32_t input_zero_point(const Operation& op, size_t i) {
  return std::visit(Overloaded{[](const Gather&) { return -1; },
                               [&](const QuantizedAdd& o) { return o.operands[i].zero_x; },
                               [](const QuantizedAvgPool2d& o) { return o.zero_x; },
                               [&](const QuantizedConcat& o) { return o.parts[i].zero_x; },
                               [](const QuantizedConv2d& o) { return o.product.zero_x; },
                               [](const QuantizedLinear& o) { return o.product.zero_x; },
                               [](const QuantizedLookup&) { return -1; },
                               [](const QuantizedMaxPool2d&) { return -1; },
                               [&](const QuantizedMul& o) { return i == 0 ? o.zero_a : o.zero_b; },
                               [](const QuantizedSoftmax&) { return -1; },
                               [](const View&) { return -1; }},
                    op);
}

int32_t output_zero_point(const Operation& op) {
  const auto of_product = [](const QuantizedProduct& p) {
    return p.output ? p.output->y.zero_point : -1;
  };
  return std::visit(Overloaded{[](const Gather&) { return -1; },
                               [](const QuantizedAdd& o) { return o.y.zero_point; },
                               [](const QuantizedAvgPool2d& o) { return o.y.zero_point; },
                               [](const QuantizedConcat& o) { return o.y.zero_point; },
                               [&](const QuantizedConv2d& o) { return of_product(o.product); },
                               [&](const QuantizedLinear& o) { return of_product(o.product); },
                               [](const QuantizedLookup&) { return -1; },
                               [](const QuantizedMaxPool2d&) { return -1; },
                               [](const QuantizedMul& o) { return o.y.zero_point; },
                               [](const QuantizedSoftmax& o) { return o.y.zero_point; },
                               [](const View&) { return -1; }},
                    op);
}

std::optional<CodeClamp> output_codes(const Operation& op, const QParams& x) {
  using Clamp = std::optional<CodeClamp>;
  const auto of = [](const StoredOutput& y) -> Clamp { return CodeClamp{y.lo, y.hi}; };
  const auto of_product = [&](const QuantizedProduct& p) -> Clamp {
    return p.output ? of(p.output->y) : std::nullopt;
  };
  return std::visit(Overloaded{[&](const Gather& o) -> Clamp {
                                 if (!o.fills()) return std::nullopt;
                                 const int32_t offset = stored_offset(x.type);
                                 return CodeClamp{std::min(x.type.qmin() + offset, o.fill),
                                                  std::max(x.type.qmax() + offset, o.fill)};
                               },
                               [&](const QuantizedAdd& o) { return of(o.y); },
                               [&](const QuantizedAvgPool2d& o) { return of(o.y); },
                               [&](const QuantizedConcat& o) { return of(o.y); },
                               [&](const QuantizedConv2d& o) { return of_product(o.product); },
                               [&](const QuantizedLinear& o) { return of_product(o.product); },
                               [&](const QuantizedLookup& o) -> Clamp {
                                 CodeClamp all{255, 0};
                                 for (int64_t c = 0; c < o.channels(); ++c) {
                                   for (const int32_t q : stored_codes(x)) {
                                     const int32_t code = o.at(c, q);
                                     all = {std::min(all.lo, code), std::max(all.hi, code)};
                                   }
                                 }
                                 return all;
                               },
                               [](const QuantizedMaxPool2d&) -> Clamp { return std::nullopt; },
                               [&](const QuantizedMul& o) { return of(o.y); },
                               [&](const QuantizedSoftmax& o) { return of(o.y); },
                               [](const View&) -> Clamp { return std::nullopt; }},
                    op);
}

bool keeps_params(const Operation& op) {
  return std::visit([](const auto& o) { return o.kKeepsParams; }, op);
}

bool runs_in_place(const Operation& op) {
  return std::visit([](const auto& o) { return o.kRunsInPlace; }, op);
}

int64_t multiply_adds(const Operation& op) {
  return std::visit(
      [](const auto& o) -> int64_t {
        if constexpr (HasProduct<std::decay_t<decltype(o)>>) return o.multiply_adds();
        return 0;
      },
      op);
}

int64_t accumulator_bound(const Operation& op) {
  return std::visit(
      [](const auto& o) -> int64_t {
        if constexpr (HasProduct<std::decay_t<decltype(o)>>)
          return accumulator_bound(o.product, o.channels());
        return 0;
      },
      op);
}

int64_t prepared_bytes(const Operation& op) {
  const auto of_product = [](const kernels::Conv2dShape& shape, const QuantizedProduct& p) {
    return kernels::PackedWeightsS8::bytes(shape) +
           kernels::ProductParams::bytes(shape, p.output.has_value());
  };
  return std::visit(
      Overloaded{[](const Gather& o) {
                   return static_cast<int64_t>(o.axes.back().index.size() * sizeof(GatherRun));
                 },
                 [](const QuantizedAdd& o) {
                   return static_cast<int64_t>(o.operands.size() * 2 * sizeof(int32_t));
                 },
                 [](const QuantizedAvgPool2d&) -> int64_t { return 0; },
                 [](const QuantizedConcat& o) {
                   return static_cast<int64_t>(o.parts.size() * sizeof(CodeTable));
                 },
                 [&](const QuantizedConv2d& o) { return of_product(o.shape, o.product); },
                 [&](const QuantizedLinear& o) {
                   return of_product({.c = o.inputs, .o = o.outputs}, o.product);
                 },
                 [](const QuantizedLookup&) -> int64_t { return 0; },
                 [](const QuantizedMaxPool2d&) -> int64_t { return 0; },
                 [](const QuantizedMul&) -> int64_t { return 0; },
                 [](const QuantizedSoftmax&) -> int64_t { return 0; },
                 [](const View&) -> int64_t { return 0; }},
      op);
}

int64_t scratch_bytes(const Operation& op, int64_t n) {
  return std::visit(
      Overloaded{
          [](const Gather&) -> int64_t { return 0; },
          [](const QuantizedAdd&) -> int64_t { return 0; },
          [&](const QuantizedAvgPool2d& o) {
            return kernels::avg_pool2d_scratch(with_batch(o.shape, n));
          },
          [](const QuantizedConcat&) -> int64_t { return 0; },
          [&](const QuantizedConv2d& o) { return kernels::conv2d_scratch(with_batch(o.shape, n)); },
          [&](const QuantizedLinear& o) { return kernels::gemm_scratch(n * o.rows, o.inputs); },
          [](const QuantizedLookup&) -> int64_t { return 0; },
          [](const QuantizedMaxPool2d&) -> int64_t { return 0; },
          [](const QuantizedMul&) -> int64_t { return 0; },
          [](const QuantizedSoftmax&) -> int64_t { return 0; },
          [](const View&) -> int64_t { return 0; }},
      op);
}

PreparedOperation::PreparedOperation(const Operation& op)
    : prepared_(std::visit(
          [](const auto& o) -> All<Operation>::Type {
            return Prepared<std::decay_t<decltype(o)>>(o);
          },
          op)) {}

void PreparedOperation::run(int64_t n, Inputs inputs, void* output) const {
  std::visit([&](const auto& p) { p.run(n, inputs, output); }, prepared_);
}

}  // namespace quantrain::integer
