#include "layers/onnx/import_window.hpp"

#include <algorithm>

#include "layers/moves.hpp"

namespace quantrain::onnx {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;

std::vector<int64_t> checked(std::vector<int64_t> numbers,
                             size_t count,
                             int64_t least,
                             const char* what) {
  const bool fits = std::all_of(
      numbers.begin(), numbers.end(), [&](int64_t n) { return n >= least && n < kMost; });
  if (numbers.size() != count || !fits) throw Refusal{std::string(what) + " are invalid"};
  return numbers;
}

}  // namespace

int64_t Windows::count(size_t axis) const {
  const int64_t span = (kernel[axis] - 1) * dilation[axis] + 1;
  const int64_t room = input[axis] + before[axis] + after[axis] - span;
  if (room < 0) throw Refusal{"its window is larger than its padded input"};
  int64_t n = room / stride[axis] + 1;
  if (ceil_mode && room % stride[axis] != 0 && n * stride[axis] < input[axis] + before[axis]) ++n;
  return n;
}

Windows windows_of(const NodeImport& n, const Value& x, std::vector<int64_t> kernel) {
  if (x.rank() != 3 && x.rank() != 4)
    throw Refusal{"of " + std::to_string(x.rank()) + " axes, expected a signal or an image"};
  const auto axes = static_cast<size_t>(x.rank() - 2);
  Windows w;
  w.kernel = checked(n.node.get("kernel_shape", kernel), axes, 1, "kernel_shape");
  if (!kernel.empty() && kernel != w.kernel)
    throw Refusal{"kernel_shape is not that of its weights"};
  const std::vector<int64_t> ones(axes, 1);
  w.stride = checked(n.node.get("strides", ones), axes, 1, "strides");
  w.dilation = checked(n.node.get("dilations", ones), axes, 1, "dilations");
  const std::vector<int64_t> pads =
      checked(n.node.get("pads", std::vector<int64_t>(2 * axes, 0)), 2 * axes, 0, "pads");
  w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
  w.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(axes), pads.end());
  w.ceil_mode = n.node.get("ceil_mode", int64_t{0}) != 0;
  for (size_t i = 0; i < axes; ++i) {
    w.input.push_back(n.importer.extent(x, static_cast<int>(i) + 2));
    if (w.input.back() >= kMost) throw Refusal{"an extent is too large"};
  }
  const std::string mode = n.node.get("auto_pad", "NOTSET");
  if (mode == "VALID") {
    w.before.assign(axes, 0);
    w.after.assign(axes, 0);
  } else if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t i = 0; i < axes; ++i) {
      const int64_t count = (w.input[i] + w.stride[i] - 1) / w.stride[i];
      const int64_t span = (w.kernel[i] - 1) * w.dilation[i] + 1;
      const int64_t sum = std::max<int64_t>((count - 1) * w.stride[i] + span - w.input[i], 0);
      w.before[i] = mode == "SAME_UPPER" ? sum / 2 : sum - sum / 2;
      w.after[i] = sum - w.before[i];
    }
  } else if (mode != "NOTSET") {
    throw Refusal{"auto_pad " + mode};
  }
  return w;
}

Value padded(NodeImport& n, const Value& x, Windows& w) {
  std::shared_ptr<Module> layer;
  if (w.axes() == 1) {
    layer = std::make_shared<ZeroPad1d>(Padding1d{w.before[0], w.after[0]});
  } else {
    layer = std::make_shared<ZeroPad2d>(Padding2d{
        .left = w.before[1], .right = w.after[1], .top = w.before[0], .bottom = w.after[0]});
  }
  Importer& importer = n.importer;
  Value y = x;
  y.storage = std::make_shared<Storage>(*x.storage);
  for (size_t i = 0; i < w.axes(); ++i) {
    w.input[i] += w.before[i] + w.after[i];
    w.before[i] = w.after[i] = 0;
    y.axes[i + 2] = importer.atoms().group(w.input[i]);
    y.storage->axes[i + 1] = y.axes[i + 2];
  }
  y.step = importer.add(importer.step_name(n.node) + "_pad", std::move(layer), {x.step});
  return y;
}

std::optional<std::vector<float>> along_axis(const Importer& importer,
                                             const Constant& constant,
                                             const Value& x,
                                             int axis) {
  if (static_cast<int64_t>(constant.dims.size()) > x.rank()) return std::nullopt;
  const Extent extent = importer.shape(x)[static_cast<size_t>(axis)];
  if (extent.batch) return std::nullopt;
  const size_t shift = static_cast<size_t>(x.rank()) - constant.dims.size();
  for (size_t i = 0; i < constant.dims.size(); ++i) {
    const bool is_axis = static_cast<int>(i + shift) == axis;
    if (constant.dims[i] != 1 && !(is_axis && constant.dims[i] == extent.n)) return std::nullopt;
  }
  std::vector<float> values = constant.floats();
  if (values.size() == 1) values.assign(static_cast<size_t>(extent.n), values[0]);
  return values;
}

std::vector<float> permuted(const std::vector<float>& values,
                            const std::vector<int64_t>& permutation) {
  if (permutation.empty()) return values;
  std::vector<float> moved;
  for (const int64_t place : permutation) moved.push_back(values[static_cast<size_t>(place)]);
  return moved;
}

}  // namespace quantrain::onnx
