#include "framework/integer/operation.hpp"

namespace quantrain::integer {
namespace {

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

void validate(const Operation& op, std::string_view where, OverflowCheck& overflow) {
  std::visit(
      [&](const auto& o) {
        if constexpr (HasProduct<std::decay_t<decltype(o)>>) {
          o.validate(where, overflow);
        } else {
          o.validate(where);
        }
      },
      op);
}

void validate(const Operation& op, std::string_view where) {
  OverflowCheck overflow;
  validate(op, where, overflow);
}

const QuantizedProduct* product(const Operation& op) {
  return std::visit(
      [](const auto& o) -> const QuantizedProduct* {
        if constexpr (HasProduct<std::decay_t<decltype(o)>>) return &o.product;
        return nullptr;
      },
      op);
}

QuantizedProduct* product(Operation& op) {
  return const_cast<QuantizedProduct*>(product(std::as_const(op)));
}

kernels::Conv2dShape weights_shape(const Operation& op) {
  return std::visit(
      [](const auto& o) -> kernels::Conv2dShape {
        if constexpr (HasProduct<std::decay_t<decltype(o)>>) return o.weights();
        return {};
      },
      op);
}

PanelKey panel_key(const Operation& op) {
  const QuantizedProduct& p = *product(op);
  const kernels::Conv2dShape s = weights_shape(op);
  const auto few = p.planned(s).layout().few;
  return {p.weight.id(), s.c, s.o, s.kh, s.kw, s.groups, p.is_binary(), few};
}

bool gives_accumulators(const Operation& op) {
  const QuantizedProduct* const p = product(op);
  return p != nullptr && !p->output;
}

int32_t input_zero_point(const Operation& op, size_t i) {
  return std::visit([&](const auto& o) { return o.input_zero_point(i); }, op);
}

int32_t output_zero_point(const Operation& op) {
  return std::visit([](const auto& o) { return o.output_zero_point(); }, op);
}

std::optional<CodeClamp> output_codes(const Operation& op, const QParams& x) {
  return std::visit([&](const auto& o) { return o.output_codes(x); }, op);
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

int64_t weight_channels(const Operation& op) {
  return std::visit(
      [](const auto& o) -> int64_t {
        if constexpr (HasProduct<std::decay_t<decltype(o)>>) return o.channels();
        return 0;
      },
      op);
}

int64_t prepared_bytes(const Operation& op) {
  return std::visit([](const auto& o) { return o.prepared_bytes(); }, op);
}

int64_t scratch_bytes(const Operation& op, int64_t n) {
  return std::visit([&](const auto& o) { return o.scratch_bytes(n); }, op);
}

Channels output_channels(const Operation& op, InputChannels inputs) {
  return std::visit([&](const auto& o) { return o.output_channels(inputs); }, op);
}

PreparedOperation::PreparedOperation(const Operation& op)
    : prepared_(std::visit(
          [](const auto& o) -> All<Operation>::Type {
            return Prepared<std::decay_t<decltype(o)>>(o);
          },
          op)) {}

const kernels::ProductParams* PreparedOperation::params() const {
  return std::visit(
      [](const auto& p) -> const kernels::ProductParams* {
        if constexpr (requires { p.params(); }) return &p.params();
        return nullptr;
      },
      prepared_);
}

void PreparedOperation::run(int64_t n, Inputs inputs, void* output) const {
  std::visit([&](const auto& p) { p.run(n, inputs, output); }, prepared_);
}

}  // namespace quantrain::integer
