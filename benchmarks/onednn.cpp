#include <dlfcn.h>

#include <algorithm>
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>
#include <vector>

#include "benchmarks/implementations.hpp"

// Works with oneDNN 2 and 3. Version 3 has no operation descriptors, and takes scales as arguments
// of the call.
namespace quantrain::benchmarks {
namespace {

using dnnl::memory;
using Type = memory::data_type;
using Tag = memory::format_tag;

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// A primitive with the memory that it reads and writes.
struct Ready {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
  dnnl::stream stream{cpu()};

  explicit Ready(const dnnl::primitive& ready) : primitive(ready) {}

  void add(int argument, const memory::desc& description, Type type) {
    memory operand(description, cpu());
    const auto bytes = static_cast<int64_t>(description.get_size());
    if (type == Type::f32) {
      fill(static_cast<float*>(operand.get_data_handle()), bytes / 4);
    } else if (type == Type::s8) {
      fill(static_cast<int8_t*>(operand.get_data_handle()), bytes);
    } else {
      fill(static_cast<uint8_t*>(operand.get_data_handle()), bytes);
    }
    arguments.emplace(argument, operand);
  }
};

Call make_call(Ready ready) {
  auto owned = std::make_shared<Ready>(std::move(ready));
  return [owned] {
    owned->primitive.execute(owned->stream, owned->arguments);
    owned->stream.wait();
  };
}

/// A scale for each output channel. Version 3 applies the scales to the weights, along the axes of
/// `weights_mask`; version 2 applies them to the result.
class Scales {
 public:
  Scales(int64_t channels, int64_t reduction, [[maybe_unused]] int weights_mask) {
    const std::vector<float> scales(static_cast<size_t>(channels),
                                    1.0f / (16.0f * static_cast<float>(reduction)));
#if DNNL_VERSION_MAJOR >= 3
    attributes.set_scales_mask(DNNL_ARG_WEIGHTS, weights_mask);
    values_ = memory({{channels}, Type::f32, Tag::x}, cpu());
    std::copy(scales.begin(), scales.end(), static_cast<float*>(values_.get_data_handle()));
#else
    attributes.set_output_scales(1 << 1, scales);
#endif
  }
  void add_to([[maybe_unused]] Ready& ready) const {
#if DNNL_VERSION_MAJOR >= 3
    ready.arguments.emplace(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, values_);
#endif
  }

  dnnl::primitive_attr attributes;

 private:
  memory values_;
};

Call sgemm(const Problem& p) {
  struct Operands {
    Buffer<float> a, b, c;
  };
  auto o = std::make_shared<Operands>(
      Operands{filled<float>(p.m * p.k), filled<float>(p.k * p.n), Buffer<float>(p.m * p.n)});
  return [o, p] {
    dnnl_sgemm(p.transpose_a ? 'T' : 'N',
               p.transpose_b ? 'T' : 'N',
               p.m,
               p.n,
               p.k,
               1.0f,
               o->a.data(),
               p.transpose_a ? p.m : p.k,
               o->b.data(),
               p.transpose_b ? p.k : p.n,
               0.0f,
               o->c.data(),
               p.n);
  };
}

/// A matrix product whose weights have the layout that oneDNN chooses.
Call matmul(const Problem& p, Type x, Type w, Type y, const Scales* scales) {
  const memory::desc source({p.m, p.k}, x, Tag::ab);
  const memory::desc weights({p.k, p.n}, w, Tag::any);
  const memory::desc result({p.m, p.n}, y, Tag::ab);
  const dnnl::primitive_attr attributes = scales ? scales->attributes : dnnl::primitive_attr();
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc description(cpu(), source, weights, result, attributes);
#else
  const dnnl::matmul::primitive_desc description({source, weights, result}, attributes, cpu());
#endif
  Ready ready{dnnl::matmul(description)};
  ready.add(DNNL_ARG_SRC, description.src_desc(), x);
  ready.add(DNNL_ARG_WEIGHTS, description.weights_desc(), w);
  ready.add(DNNL_ARG_DST, description.dst_desc(), y);
  if (scales) scales->add_to(ready);
  return make_call(std::move(ready));
}

Call gemm_packed(const Problem& p) { return matmul(p, Type::f32, Type::f32, Type::f32, nullptr); }
Call gemm_integer(const Problem& p) { return matmul(p, Type::u8, Type::s8, Type::s32, nullptr); }
Call gemm_requantize(const Problem& p) {
  const Scales scales(p.n, p.k, 1 << 1);
  return matmul(p, Type::u8, Type::s8, Type::u8, &scales);
}

/// The shapes of a convolution, in oneDNN's order of axes. oneDNN chooses the memory layouts.
struct Convolution {
  memory::desc x, w, bias, y;
  memory::dims stride, padding;

  Convolution(const kernels::Conv2dShape& s, Type x_type, Type w_type, Type y_type)
      : x({s.n, s.c, s.h, s.w}, x_type, Tag::any),
        w(weights(s), w_type, Tag::any),
        bias({s.o}, Type::f32, Tag::x),
        y({s.n, s.o, s.oh(), s.ow()}, y_type, Tag::any),
        stride{s.stride_h, s.stride_w},
        padding{s.pad_h, s.pad_w} {}

  dnnl::convolution_forward::primitive_desc forward(dnnl::prop_kind kind,
                                                    const dnnl::primitive_attr& attributes) const {
#if DNNL_VERSION_MAJOR >= 3
    return {cpu(), kind, kDirect, x, w, bias, y, stride, padding, padding, attributes};
#else
    return {{kind, kDirect, x, w, bias, y, stride, padding, padding}, attributes, cpu()};
#endif
  }
  dnnl::convolution_backward_data::primitive_desc backward_data() const {
    const auto hint = forward(dnnl::prop_kind::forward_training, {});
#if DNNL_VERSION_MAJOR >= 3
    return {cpu(), kDirect, x, w, y, stride, padding, padding, hint};
#else
    return {{kDirect, x, w, y, stride, padding, padding}, cpu(), hint};
#endif
  }
  dnnl::convolution_backward_weights::primitive_desc backward_weights() const {
    const auto hint = forward(dnnl::prop_kind::forward_training, {});
#if DNNL_VERSION_MAJOR >= 3
    return {cpu(), kDirect, x, w, y, stride, padding, padding, hint};
#else
    return {{kDirect, x, w, y, stride, padding, padding}, cpu(), hint};
#endif
  }

  static memory::dims weights(const kernels::Conv2dShape& s) {
    if (s.groups == 1) return {s.o, s.c, s.kh, s.kw};
    return {s.groups, s.group_o(), s.group_c(), s.kh, s.kw};
  }

  static constexpr auto kDirect = dnnl::algorithm::convolution_direct;
};

Convolution floats(const Problem& p) { return {p.conv, Type::f32, Type::f32, Type::f32}; }

Call conv_forward(const Problem& p) {
  const auto description = floats(p).forward(dnnl::prop_kind::forward_training, {});
  Ready ready{dnnl::convolution_forward(description)};
  ready.add(DNNL_ARG_SRC, description.src_desc(), Type::f32);
  ready.add(DNNL_ARG_WEIGHTS, description.weights_desc(), Type::f32);
  ready.add(DNNL_ARG_BIAS, description.bias_desc(), Type::f32);
  ready.add(DNNL_ARG_DST, description.dst_desc(), Type::f32);
  return make_call(std::move(ready));
}

Call conv_backward_data(const Problem& p) {
  const auto description = floats(p).backward_data();
  Ready ready{dnnl::convolution_backward_data(description)};
  ready.add(DNNL_ARG_DIFF_SRC, description.diff_src_desc(), Type::f32);
  ready.add(DNNL_ARG_WEIGHTS, description.weights_desc(), Type::f32);
  ready.add(DNNL_ARG_DIFF_DST, description.diff_dst_desc(), Type::f32);
  return make_call(std::move(ready));
}

Call conv_backward_weights(const Problem& p) {
  const auto description = floats(p).backward_weights();
  Ready ready{dnnl::convolution_backward_weights(description)};
  ready.add(DNNL_ARG_SRC, description.src_desc(), Type::f32);
  ready.add(DNNL_ARG_DIFF_WEIGHTS, description.diff_weights_desc(), Type::f32);
  ready.add(DNNL_ARG_DIFF_DST, description.diff_dst_desc(), Type::f32);
  return make_call(std::move(ready));
}

Call conv_requantize(const Problem& p) {
  const Scales scales(p.conv.o, p.conv.reduction(), p.conv.groups > 1 ? 3 : 1);
  const auto description = Convolution(p.conv, Type::u8, Type::s8, Type::u8)
                               .forward(dnnl::prop_kind::forward_inference, scales.attributes);
  Ready ready{dnnl::convolution_forward(description)};
  ready.add(DNNL_ARG_SRC, description.src_desc(), Type::u8);
  ready.add(DNNL_ARG_WEIGHTS, description.weights_desc(), Type::s8);
  ready.add(DNNL_ARG_BIAS, description.bias_desc(), Type::f32);
  ready.add(DNNL_ARG_DST, description.dst_desc(), Type::u8);
  scales.add_to(ready);
  return make_call(std::move(ready));
}

/// A batch norm in training, with its ReLU, of images that lie in memory like ours.
struct BatchNorm {
  const dnnl::normalization_flags flags = dnnl::normalization_flags::use_scale |
                                          dnnl::normalization_flags::use_shift |
                                          dnnl::normalization_flags::fuse_norm_relu;
  static constexpr float kEpsilon = 1e-5f;
  memory::desc x, column;
  dnnl::batch_normalization_forward::primitive_desc forward;

  explicit BatchNorm(const kernels::Conv2dShape& s)
      : x({s.n, s.c, s.h, s.w}, Type::f32, Tag::nhwc),
        column({s.c}, Type::f32, Tag::x),
#if DNNL_VERSION_MAJOR >= 3
        forward(cpu(), dnnl::prop_kind::forward_training, x, x, kEpsilon, flags) {
  }
#else
        forward({dnnl::prop_kind::forward_training, x, kEpsilon, flags}, cpu()) {
  }
#endif

  dnnl::batch_normalization_backward::primitive_desc backward() const {
#if DNNL_VERSION_MAJOR >= 3
    return {cpu(), dnnl::prop_kind::backward, x, x, x, kEpsilon, flags, forward};
#else
    return {{dnnl::prop_kind::backward, x, x, kEpsilon, flags}, cpu(), forward};
#endif
  }

  /// Adds what both directions read or write.
  template <class Description>
  void add_shared(Ready& ready, const Description& description) const {
    ready.add(DNNL_ARG_SRC, x, Type::f32);
    ready.add(DNNL_ARG_SCALE, column, Type::f32);
    ready.add(DNNL_ARG_SHIFT, column, Type::f32);
    ready.add(DNNL_ARG_MEAN, description.mean_desc(), Type::f32);
    ready.add(DNNL_ARG_VARIANCE, description.variance_desc(), Type::f32);
    ready.add(DNNL_ARG_WORKSPACE, description.workspace_desc(), Type::u8);
  }
};

Call batch_norm_forward(const Problem& p) {
  const BatchNorm norm(p.conv);
  Ready ready{dnnl::batch_normalization_forward(norm.forward)};
  norm.add_shared(ready, norm.forward);
  ready.add(DNNL_ARG_DST, norm.x, Type::f32);
  return make_call(std::move(ready));
}

Call batch_norm_backward(const Problem& p) {
  const BatchNorm norm(p.conv);
  const auto description = norm.backward();
  Ready ready{dnnl::batch_normalization_backward(description)};
  norm.add_shared(ready, description);
  ready.add(DNNL_ARG_DIFF_DST, norm.x, Type::f32);
  ready.add(DNNL_ARG_DIFF_SRC, norm.x, Type::f32);
  ready.add(DNNL_ARG_DIFF_SCALE, norm.column, Type::f32);
  ready.add(DNNL_ARG_DIFF_SHIFT, norm.column, Type::f32);
  return make_call(std::move(ready));
}

/// omp_set_num_threads() of the OpenMP library that oneDNN has loaded; null if there is none. We do
/// not link OpenMP, so the function is looked up at run time.
auto omp_set_num_threads() {
  return reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
}

}  // namespace

Implementation onednn_kernels() {
  if (omp_set_num_threads() == nullptr) return {};  // the number of threads cannot be set
  return {"onednn",
          [](int threads) { omp_set_num_threads()(threads); },
          {{"gemm_f32", sgemm},
           {"gemm_f32_packed", gemm_packed},
           {"gemm_u8s8", gemm_integer},
           {"gemm_u8s8_requantize", gemm_requantize},
           {"conv_f32_forward", conv_forward},
           {"conv_f32_backward_data", conv_backward_data},
           {"conv_f32_backward_weights", conv_backward_weights},
           {"conv_u8s8_requantize", conv_requantize},
           {"depthwise_f32_forward", conv_forward},
           {"depthwise_f32_backward_data", conv_backward_data},
           {"depthwise_f32_backward_weights", conv_backward_weights},
           {"depthwise_u8s8_requantize", conv_requantize},
           {"batch_norm_f32_forward", batch_norm_forward},
           {"batch_norm_f32_backward", batch_norm_backward}}};
}

}  // namespace quantrain::benchmarks
