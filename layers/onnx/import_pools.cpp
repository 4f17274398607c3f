#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "layers/activation.hpp"
#include "layers/moves.hpp"
#include "layers/onnx/import_window.hpp"
#include "layers/onnx/importer.hpp"
#include "layers/pooling.hpp"
#include "layers/reduction.hpp"

// Pools, global pools, and reductions over axes.
namespace quantrain::onnx {
namespace {

/// The value as [N, spatial ..., C], in any order of the channels.
Value channels_last(NodeImport& n) {
  const Value x = n.importer.with_last(n.x(), 1).x;
  if (static_cast<int64_t>(x.storage->axes.size()) != x.rank())
    throw Refusal{"mixes the samples of a batch"};
  return x;
}

/// Windows with equal padding on both sides, of which `first` and the following are the wanted
/// ones.
struct EqualPadding {
  int64_t padding = 0;
  int64_t first = 0;
  int64_t count = 0;  // of all windows
};
/// Padding does not count in a pool, so only the places of the windows matter: they start at
/// -before
/// + i * stride. Nothing if no equal padding that is less than the kernel has all of them.
std::optional<EqualPadding> equal_padding(const Windows& w, size_t axis, bool ceil_mode) {
  constexpr int64_t kMostTried = 16;
  for (int64_t first = 0; first < kMostTried; ++first) {
    if (w.before[axis] + first * w.stride[axis] >= w.kernel[axis]) break;
    Windows both = w;
    both.before[axis] = both.after[axis] = w.before[axis] + first * w.stride[axis];
    both.ceil_mode = ceil_mode;
    if (both.input[axis] + 2 * both.before[axis] < w.kernel[axis]) continue;
    const int64_t count = both.count(axis);
    if (count - first >= w.count(axis)) return EqualPadding{both.before[axis], first, count};
  }
  return std::nullopt;
}

void pool(NodeImport& n, bool is_max) {
  if (n.node.outputs.size() > 1 && !n.node.outputs[1].empty())
    throw Refusal{"with the output Indices"};
  Importer& importer = n.importer;
  Windows w = windows_of(n, n.x(), {});
  if (std::any_of(w.dilation.begin(), w.dilation.end(), [](int64_t d) { return d != 1; }))
    throw Refusal{"with dilations"};
  Value x = channels_last(n);
  const bool counts_padding = !is_max && n.node.get("count_include_pad", int64_t{0}) != 0;
  bool ceil_mode = w.ceil_mode;
  std::vector<int64_t> counts;
  std::vector<EqualPadding> equal;  // if the padding before and after differs
  for (size_t i = 0; i < w.axes(); ++i) counts.push_back(w.count(i));
  if (!w.is_symmetric() && counts_padding) {
    if (ceil_mode) throw Refusal{"with ceil_mode, count_include_pad and unequal pads"};
    x = padded(n, x, w);  // the zeros are elements like all others
  } else if (!w.is_symmetric()) {
    for (const bool ceil : {false, true}) {
      equal.clear();
      for (size_t i = 0; i < w.axes(); ++i) {
        if (const auto padding = equal_padding(w, i, ceil)) equal.push_back(*padding);
      }
      ceil_mode = ceil;
      if (equal.size() == w.axes()) break;
    }
    if (equal.size() != w.axes()) throw Refusal{"with pads that no layer with equal pads has"};
    for (size_t i = 0; i < w.axes(); ++i) w.before[i] = w.after[i] = equal[i].padding;
  }
  for (size_t i = 0; i < w.axes(); ++i) {
    if (w.before[i] >= w.kernel[i]) throw Refusal{"with pads that are not less than the kernel"};
  }

  std::shared_ptr<Module> layer;
  if (w.axes() == 1) {
    const Pooling1dOptions options{w.stride[0], w.before[0], ceil_mode, counts_padding};
    if (is_max) {
      layer = std::make_shared<MaxPool1d>(w.kernel[0], options);
    } else {
      layer = std::make_shared<AvgPool1d>(w.kernel[0], options);
    }
  } else {
    const PoolingOptions options{
        {w.stride[0], w.stride[1]}, {w.before[0], w.before[1]}, ceil_mode, counts_padding};
    const Size2d kernel{w.kernel[0], w.kernel[1]};
    if (is_max) {
      layer = std::make_shared<MaxPool2d>(kernel, options);
    } else {
      layer = std::make_shared<AvgPool2d>(kernel, options);
    }
  }
  Value y = importer.function_of(x, std::move(layer));
  y.storage = std::make_shared<Storage>(*x.storage);
  for (size_t i = 0; i < w.axes(); ++i) {
    if (!equal.empty() && equal[i].count != counts[i]) {
      const SliceOptions part{.begin = equal[i].first, .end = equal[i].first + counts[i]};
      y.step = importer.add(
          y.step + "_slice", std::make_shared<Slice>(static_cast<int>(i) + 1, part), {y.step});
    }
    y.axes[i + 2] = importer.atoms().group(counts[i]);
    y.storage->axes[i + 1] = y.axes[i + 2];
  }
  n.give(std::move(y));
}

void global_pool(NodeImport& n, bool is_max) {
  Importer& importer = n.importer;
  if (n.x().rank() != 3 && n.x().rank() != 4)
    throw Refusal{"of " + std::to_string(n.x().rank()) + " axes, expected a signal or an image"};
  const Value x = channels_last(n);
  std::shared_ptr<Module> layer;
  if (x.rank() == 3) {
    if (is_max) {
      layer = std::make_shared<GlobalMaxPool1d>();
    } else {
      layer = std::make_shared<GlobalAvgPool1d>();
    }
  } else if (is_max) {
    layer = std::make_shared<GlobalMaxPool2d>();
  } else {
    layer = std::make_shared<GlobalAvgPool2d>();
  }
  Value y = importer.function_of(x, std::move(layer));
  y.storage = std::make_shared<Storage>(*x.storage);
  for (int i = 2; i < static_cast<int>(x.rank()); ++i) {
    y.axes[static_cast<size_t>(i)] = {};
    y.storage->axes[static_cast<size_t>(i) - 1] = {};
  }
  n.give(std::move(y));
}

/// The axes of a tensor that hold the atoms of `gone`, if they hold nothing else and are
/// neighbours.
std::vector<int> whole_axes(const Groups& held, const Group& gone) {
  std::vector<int> axes;
  size_t found = 0;
  for (size_t i = 1; i < held.size(); ++i) {
    const auto is_gone = [&](Atom atom) {
      return std::find(gone.begin(), gone.end(), atom) != gone.end();
    };
    const auto count = static_cast<size_t>(std::count_if(held[i].begin(), held[i].end(), is_gone));
    if (count == 0) continue;
    if (count != held[i].size()) return {};
    if (!axes.empty() && axes.back() + 1 != static_cast<int>(i)) return {};
    axes.push_back(static_cast<int>(i));
    found += count;
  }
  return found == gone.size() ? axes : std::vector<int>();
}

/// Mean or largest element over axes. The tensor is arranged so that they are neighbours.
Value reduced(NodeImport& n, const Value& input, std::vector<int64_t> given, bool is_max) {
  Importer& importer = n.importer;
  if (given.empty()) {
    given.resize(static_cast<size_t>(input.rank()));
    std::iota(given.begin(), given.end(), 0);
  }
  const std::vector<int> axes = checked_axes(given, input.rank());
  Group gone, kept;
  for (int i = 0; i < static_cast<int>(input.rank()); ++i) {
    const Group& group = input.axes[static_cast<size_t>(i)];
    const bool goes = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (goes) importer.extent(input, i);  // refuses the batch
    (goes ? gone : kept).insert((goes ? gone : kept).end(), group.begin(), group.end());
  }
  Value y = input;
  if (!gone.empty()) {
    importer.settle(input, input.rank() == 4);
    Value x = input;
    std::vector<int> ours = whole_axes(x.storage->axes, gone);
    if (ours.empty()) {  // move them to the end
      kept.erase(std::find(kept.begin(), kept.end(), kBatch));
      x = importer.arranged(x, {{kBatch}, kept, gone});
      ours = {2};
    }
    std::shared_ptr<Module> layer;
    if (is_max) {
      layer = std::make_shared<Max>(ours);
    } else {
      layer = std::make_shared<Mean>(ours);
    }
    y = importer.function_of(x, std::move(layer));
    y.storage = std::make_shared<Storage>(*x.storage);
    y.storage->axes.erase(y.storage->axes.begin() + ours.front(),
                          y.storage->axes.begin() + ours.back() + 1);
  }
  const bool keeps = n.node.get("keepdims", int64_t{1}) != 0;
  for (size_t i = axes.size(); i-- > 0;) {
    if (keeps) {
      y.axes[static_cast<size_t>(axes[i])] = {};
    } else {
      y.axes.erase(y.axes.begin() + axes[i]);
    }
  }
  return y;
}

/// A reduction is a mean or largest element of f(x), times the number of elements for sums, and
/// then g of the result.
struct Reduction {
  const char* op_type;
  std::function<std::shared_ptr<Module>()> f, g;
  enum { kMean, kSum, kMax, kMin } kind;
};

void reduce(NodeImport& n, const Reduction& reduction) {
  const std::vector<int64_t> axes = n.integers(1, "axes");
  if (axes.empty() && n.node.get("noop_with_empty_axes", int64_t{0}) != 0) return n.give(n.x());
  Importer& importer = n.importer;
  Value x = n.x();
  if (reduction.f != nullptr) x = importer.function_of(x, reduction.f());
  const bool is_min = reduction.kind == Reduction::kMin;
  if (is_min) x = importer.scaled(x, -1.0f);
  Value y = reduced(n, x, axes, is_min || reduction.kind == Reduction::kMax);
  if (is_min) y = importer.scaled(y, -1.0f);
  if (reduction.kind == Reduction::kSum) {
    const Extent before = importer.atoms().extent(flat(x.axes));
    const Extent after = importer.atoms().extent(flat(y.axes));
    y = importer.scaled(y, static_cast<float>(before.n / after.n));
  }
  if (reduction.g != nullptr) y = importer.function_of(y, reduction.g());
  n.give(std::move(y));
}

template <class Layer>
std::shared_ptr<Module> made() {
  return std::make_shared<Layer>();
}

}  // namespace

void add_pools(HandlerTable& table) {
  table["MaxPool"] = [](NodeImport& n) { pool(n, true); };
  table["AveragePool"] = [](NodeImport& n) { pool(n, false); };
  table["GlobalMaxPool"] = [](NodeImport& n) { global_pool(n, true); };
  table["GlobalAveragePool"] = [](NodeImport& n) { global_pool(n, false); };
  const Reduction reductions[] = {{"ReduceMean", nullptr, nullptr, Reduction::kMean},
                                  {"ReduceMax", nullptr, nullptr, Reduction::kMax},
                                  {"ReduceMin", nullptr, nullptr, Reduction::kMin},
                                  {"ReduceSum", nullptr, nullptr, Reduction::kSum},
                                  {"ReduceL1", made<Abs>, nullptr, Reduction::kSum},
                                  {"ReduceL2", made<Square>, made<Sqrt>, Reduction::kSum},
                                  {"ReduceSumSquare", made<Square>, nullptr, Reduction::kSum},
                                  {"ReduceLogSum", nullptr, made<Logarithm>, Reduction::kSum}};
  for (const Reduction& reduction : reductions)
    table[reduction.op_type] = [reduction](NodeImport& n) { reduce(n, reduction); };
}

}  // namespace quantrain::onnx
